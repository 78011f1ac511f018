// The VAPID key pair of a run, and the check that a push service makes of the tokens signed with it
// (RFC 8292).
import { createPublicKey, generateKeyPairSync, type KeyObject, verify } from "node:crypto"

export interface VapidPair {
  readonly publicKey: string
  readonly privateKey: string
}

export const makeVapidPair = (): VapidPair => {
  const { d, x, y } = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({
    format: "jwk"
  })
  const point = [Buffer.from([4]), Buffer.from(x!, "base64url"), Buffer.from(y!, "base64url")]
  return { publicKey: Buffer.concat(point).toString("base64url"), privateKey: d! }
}

const keyOf = (publicKey: string): KeyObject => {
  const point = Buffer.from(publicKey, "base64url")
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((n) => n.toString("base64url"))
  return createPublicKey({ key: { kty: "EC", crv: "P-256", x: x!, y: y! }, format: "jwk" })
}

const longestSeconds = 24 * 60 * 60

/**
 * Returns a check of the header Authorization: why a push service of this origin refuses it, or
 * undefined. A token is verified once; its expiry is checked with every push.
 */
export const vapidCheck = (publicKey: string, origin: string) => {
  const key = keyOf(publicKey)
  const verified = new Map<string, number>()

  const expiryOf = (token: string): number | string => {
    const [head, claims, signature] = token.split(".")
    if (head === undefined || claims === undefined || signature === undefined) return "no JWT"
    const isSigned = verify(
      "sha256",
      Buffer.from(`${head}.${claims}`),
      { key, dsaEncoding: "ieee-p1363" },
      Buffer.from(signature, "base64url")
    )
    if (!isSigned) return "the signature is wrong"
    const { aud, exp } = JSON.parse(Buffer.from(claims, "base64url").toString())
    if (aud !== origin) return `aud is ${aud}, not ${origin}`
    return typeof exp === "number" ? exp : "no exp"
  }

  return (authorization = ""): string | undefined => {
    const [, token, sender] = /^vapid t=([^,]+), ?k=(\S+)$/i.exec(authorization) ?? []
    if (token === undefined) return "no VAPID token"
    if (sender !== publicKey) return "another VAPID key"
    const expiry = verified.get(token) ?? expiryOf(token)
    if (typeof expiry === "string") return expiry
    verified.set(token, expiry)
    const left = expiry - Date.now() / 1000
    if (left <= 0) return "expired"
    return left > longestSeconds ? "valid for more than a day" : undefined
  }
}
