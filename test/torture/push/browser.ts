// The keys of one simulated browser, and the decryption of pushes to it: RFC 8291 over RFC 8188,
// written from the RFCs and apart from the service's own code.
import { createDecipheriv, createECDH, createHmac, type ECDH, randomBytes } from "node:crypto"

const authTagBytes = 16

export interface Browser {
  /** Base64url, as in the JSON of a PushSubscription. */
  readonly p256dh: string
  readonly auth: string
  /** Returns the payload; throws when the body was not encrypted for this browser. */
  readonly open: (body: Buffer) => Buffer
}

const hmac = (key: Buffer, ...parts: ReadonlyArray<Buffer | string>): Buffer => {
  const hash = createHmac("sha256", key)
  for (const part of parts) hash.update(part)
  return hash.digest()
}

/** RFC 8188 section 2.1: salt, record size, and the key id, which is the sender's public key. */
const parseHeader = (body: Buffer) => {
  if (body.length < 21 + 65 + authTagBytes + 1) throw new Error(`a body of ${body.length} bytes`)
  const keyIdBytes = body[20]!
  if (keyIdBytes !== 65) throw new Error(`a key id of ${keyIdBytes} bytes`)
  const records = body.subarray(21 + keyIdBytes)
  if (records.length > body.readUInt32BE(16)) throw new Error("more than one record")
  return { salt: body.subarray(0, 16), sender: body.subarray(21, 21 + keyIdBytes), record: records }
}

/** RFC 8188 section 2: the last record ends with 0x02 and zeros. */
const withoutPadding = (plain: Buffer): Buffer => {
  let end = plain.length - 1
  while (end >= 0 && plain[end] === 0) end--
  if (plain[end] !== 2) throw new Error("the padding of the last record does not begin with 2")
  return plain.subarray(0, end)
}

const open = (ecdh: ECDH, own: Buffer, auth: Buffer, body: Buffer): Buffer => {
  const { record, salt, sender } = parseHeader(body)
  // RFC 8291 section 3.4.
  const keyPrk = hmac(auth, ecdh.computeSecret(sender))
  const inputKey = hmac(keyPrk, "WebPush: info\0", own, sender, "\x01")
  const prk = hmac(salt, inputKey)
  const contentKey = hmac(prk, "Content-Encoding: aes128gcm\0\x01").subarray(0, 16)
  const nonce = hmac(prk, "Content-Encoding: nonce\0\x01").subarray(0, 12)
  const decipher = createDecipheriv("aes-128-gcm", contentKey, nonce)
  decipher.setAuthTag(record.subarray(-authTagBytes))
  return withoutPadding(
    Buffer.concat([decipher.update(record.subarray(0, -authTagBytes)), decipher.final()])
  )
}

export const makeBrowser = (): Browser => {
  const ecdh = createECDH("prime256v1")
  const own = ecdh.generateKeys()
  const auth = randomBytes(16)
  return {
    p256dh: own.toString("base64url"),
    auth: auth.toString("base64url"),
    open: (body) => open(ecdh, own, auth, body)
  }
}
