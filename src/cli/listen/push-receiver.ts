// The receiving half of Web Push: decrypts as a browser does with its own keys, and verifies the
// Authorization header as a push service does (RFC 8292). `bellcast listen` uses it to be a browser
// in the terminal, the push-service simulator to check what the service sends.
import { createECDH, createPublicKey, type ECDH, type KeyObject, randomBytes } from "node:crypto"
import ece from "http_ece"
import { errors, type JWTPayload, jwtVerify } from "jose"

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

const tokenLifetimeMillisMax = 24 * 3600 * 1000

/** The values that the receiver of the request expects. */
interface VapidExpectation {
  /** Origin of the push service that was called, e.g. `https://push.example.net`. */
  readonly audience: string
  readonly nowMillis: number
  /** The application server key of the subscription, base64url. Undefined: any key is accepted. */
  readonly applicationServerKey?: string | undefined
}

/** 401: no usable VAPID credentials. 403: wrong ones (RFC 8292 section 4.2). */
type VapidVerdict =
  | {
      readonly ok: true
      readonly applicationServerKey: string
      readonly subject: string | undefined
    }
  | { readonly ok: false; readonly status: 401 | 403; readonly reason: string }

const refused = (status: 401 | 403, reason: string): VapidVerdict => ({ ok: false, status, reason })

/**
 * Parameters of a `vapid` header (RFC 8292 section 3). Undefined: malformed, or one is repeated.
 */
const parametersOf = (header: string): Map<string, string> | undefined => {
  const parameters = new Map<string, string>()
  for (const part of header.split(",")) {
    const match = /^\s*([a-z0-9_-]+)\s*=\s*(\S+)\s*$/i.exec(part)
    if (!match?.[1] || !match[2] || parameters.has(match[1])) return undefined
    parameters.set(match[1], match[2])
  }
  return parameters
}

const publicKeyOf = (k: string) => {
  const point = Buffer.from(k, "base64url")
  // node:crypto also takes the hybrid and compressed forms, which no push service does.
  if (point.length !== 65 || point[0] !== 4) return undefined
  const x = point.toString("base64url", 1, 33)
  const y = point.toString("base64url", 33)
  try {
    return createPublicKey({ format: "jwk", key: { kty: "EC", crv: "P-256", x, y } })
  } catch {
    return undefined
  }
}

/** Why claims with a valid signature cannot be accepted. */
const claimsFault = (
  { aud, exp = 0, sub }: JWTPayload,
  { audience, nowMillis }: VapidExpectation
): string | undefined => {
  if (aud !== audience) return `aud is ${String(aud)}, not ${audience}`
  if (exp * 1000 > nowMillis + tokenLifetimeMillisMax) return "exp is more than 24 hours away"
  // Only a SHOULD in section 2.1, but Apple refuses anything else.
  if (sub !== undefined && !/^(mailto|https):/.test(sub)) return "sub is neither mailto: nor https:"
  return undefined
}

/** The claims of a token with a valid signature, or why it has none. */
const claimsOf = (token: string, key: KeyObject, nowMillis: number): Promise<JWTPayload | string> =>
  jwtVerify(token, key, {
    algorithms: ["ES256"],
    typ: "JWT",
    requiredClaims: ["exp"],
    currentDate: new Date(nowMillis)
  }).then(
    ({ payload }) => payload,
    (error: unknown) => (error instanceof errors.JOSEError ? error.message : "no usable token")
  )

/** Checks header syntax, signature, audience, lifetime and key. Never rejects. */
export const checkVapid = async (
  authorization: string | undefined,
  expected: VapidExpectation
): Promise<VapidVerdict> => {
  const scheme = /^vapid +(.*)$/is.exec(authorization ?? "")
  if (!scheme?.[1]) return refused(401, "no vapid credentials")
  const parameters = parametersOf(scheme[1])
  const t = parameters?.get("t") ?? ""
  const k = parameters?.get("k") ?? ""
  if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(t) || !/^[\w-]+$/.test(k))
    return refused(401, "the header is not `vapid t=<jwt>, k=<key>`")
  const key = publicKeyOf(k)
  if (key === undefined) return refused(403, "k is not an uncompressed P-256 point")
  const claims = await claimsOf(t, key, expected.nowMillis)
  const fault = typeof claims === "string" ? claims : claimsFault(claims, expected)
  if (typeof claims === "string" || fault !== undefined) return refused(403, String(fault))
  if (expected.applicationServerKey !== undefined && k !== expected.applicationServerKey)
    return refused(
      403,
      "the credentials do not correspond to the key this subscription was made with"
    )
  return { ok: true, applicationServerKey: k, subject: claims.sub }
}
