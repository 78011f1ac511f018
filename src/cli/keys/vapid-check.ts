// Verifies the Authorization header of a push request as a push service does (RFC 8292). The time
// is an argument, so that tests can check the RFC's example of 2016.
import { createPublicKey, verify } from "node:crypto"

const tokenLifetimeMillisMax = 24 * 3600 * 1000
const token = /^[A-Za-z0-9_-]+$/

/** What the receiver of the request knows. */
export interface VapidExpectation {
  /** Origin of the push service that was called, e.g. `https://push.example.net`. */
  readonly audience: string
  readonly nowMillis: number
  /** The application server key of the subscription, base64url. Undefined: any key is accepted. */
  readonly applicationServerKey?: string | undefined
}

/** 401: no usable VAPID credentials. 403: wrong ones (RFC 8292 section 4.2). */
export type VapidVerdict =
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

const jsonOf = (part: string): Record<string, unknown> | undefined => {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, "base64url").toString())
    return typeof value === "object" && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
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

const claimsFault = (
  claims: Record<string, unknown>,
  expected: VapidExpectation
): string | undefined => {
  const { aud, exp, sub } = claims
  if (aud !== expected.audience) return `aud is ${String(aud)}, not ${expected.audience}`
  if (typeof exp !== "number" || !Number.isFinite(exp)) return "exp is missing"
  if (exp * 1000 <= expected.nowMillis) return "the token has expired"
  if (exp * 1000 > expected.nowMillis + tokenLifetimeMillisMax)
    return "exp is more than 24 hours away"
  // Only a SHOULD in section 2.1, but Apple refuses anything else.
  if (sub !== undefined && (typeof sub !== "string" || !/^(mailto|https):/.test(sub)))
    return "sub is neither mailto: nor https:"
  return undefined
}

/** Why the signature of a token cannot be accepted. */
const signatureFault = (
  header: string,
  claims: string,
  signature: string,
  k: string
): string | undefined => {
  const { typ, alg } = jsonOf(header) ?? {}
  if (typ !== "JWT" || alg !== "ES256") return "the token is not an ES256 JWT"
  const key = publicKeyOf(k)
  if (!key) return "k is not an uncompressed P-256 point"
  const signed = Buffer.from(`${header}.${claims}`)
  const bytes = Buffer.from(signature, "base64url")
  return verify("sha256", signed, { key, dsaEncoding: "ieee-p1363" }, bytes)
    ? undefined
    : "the signature does not verify"
}

/** Checks header syntax, signature, audience, lifetime and key. Never throws. */
export const checkVapid = (
  authorization: string | undefined,
  expected: VapidExpectation
): VapidVerdict => {
  const scheme = /^vapid +(.*)$/is.exec(authorization ?? "")
  if (!scheme?.[1]) return refused(401, "no vapid credentials")
  const parameters = parametersOf(scheme[1])
  const t = parameters?.get("t")?.split(".") ?? []
  const k = parameters?.get("k") ?? ""
  const [header = "", claims = "", signature = ""] = t
  if (t.length !== 3 || ![...t, k].every((part) => token.test(part)))
    return refused(401, "the header is not `vapid t=<jwt>, k=<key>`")
  const signatureWrong = signatureFault(header, claims, signature, k)
  if (signatureWrong !== undefined) return refused(403, signatureWrong)
  const content = jsonOf(claims)
  const fault = content ? claimsFault(content, expected) : "the claims are not a JSON object"
  if (fault) return refused(403, fault)
  if (expected.applicationServerKey !== undefined && k !== expected.applicationServerKey) {
    return refused(
      403,
      "the credentials do not correspond to the key this subscription was made with"
    )
  }
  const subject = content?.["sub"]
  return {
    ok: true,
    applicationServerKey: k,
    subject: typeof subject === "string" ? subject : undefined
  }
}
