// The receiving half of Web Push encryption: what a browser does with its own keys. `bellcast
// listen` uses it to be a browser in the terminal, the push-service simulator to check what the
// service sends.
import { createECDH, type ECDH, randomBytes } from "node:crypto"
import ece from "http_ece"

/**
 * The keys of one subscription: public parts as a browser shows them, private parts to decrypt
 * with.
 */
export interface ReceiverKeys {
  /** base64url, 65 bytes, uncompressed P-256 point. */
  readonly p256dh: string
  /** base64url, 16 bytes. */
  readonly auth: string
  readonly pair: ECDH
}

/** New random keys, as PushManager.subscribe() makes them (RFC 8291 section 3.1 and 3.2). */
export const makeReceiverKeys = (): ReceiverKeys => {
  const pair = createECDH("prime256v1")
  return {
    p256dh: pair.generateKeys("base64url"),
    auth: randomBytes(16).toString("base64url"),
    pair
  }
}

/**
 * Keys from their stored private parts, both base64url. Throws when the private key is not in
 * range.
 */
export const receiverKeysFrom = (privateKey: string, auth: string): ReceiverKeys => {
  const pair = createECDH("prime256v1")
  pair.setPrivateKey(privateKey, "base64url")
  return { p256dh: pair.getPublicKey("base64url"), auth, pair }
}

const senderKeyBytes = 65
const headerBytes = 16 + 4 + 1 + senderKeyBytes
const recordBytesMin = 1 + 16

/**
 * The public key of the sender named in the body's header, base64url (RFC 8188 section 2.1). Throws
 * on a body that is not Web Push.
 */
export const senderKeyOf = (body: Buffer): string => {
  if (body.length < headerBytes + recordBytesMin)
    throw new Error(`a Web Push body has at least ${headerBytes + recordBytesMin} bytes`)
  if (body[20] !== senderKeyBytes)
    throw new Error(`keyid must be the sender's ${senderKeyBytes}-byte key, not ${body[20]} bytes`)
  return body.toString("base64url", 21, headerBytes)
}

/**
 * The plaintext of an aes128gcm push body (RFC 8291 section 4). Throws when it was not encrypted
 * for these keys, was changed on the way, or is not exactly one record.
 */
export const openPush = (keys: ReceiverKeys, body: Buffer): Buffer => {
  senderKeyOf(body)
  // http_ece would go on to a second record; RFC 8291 section 4 allows one.
  if (body.length - headerBytes > body.readUInt32BE(16))
    throw new Error("a push message is a single record")
  return ece.decrypt(body, {
    version: "aes128gcm",
    privateKey: keys.pair,
    authSecret: Buffer.from(keys.auth, "base64url")
  })
}
