// Whether the keys of a subscription can be encrypted to (RFC 8291): found out at registration, not at the first push.
import { ECDH } from "node:crypto"

/** Both base64 alphabets, padding optional: browsers and libraries differ. */
const bytesOf = (text: string): Buffer | undefined =>
  /^[A-Za-z0-9+/_-]+={0,2}$/.test(text) ? Buffer.from(text, "base64url") : undefined

/** OpenSSL also takes compressed (33 bytes) and hybrid (0x06, 0x07) points; browsers send neither. */
export const checkP256dh = (text: string): string | undefined => {
  const bytes = bytesOf(text)
  if (bytes?.length !== 65 || bytes[0] !== 0x04)
    return "Must be an uncompressed P-256 point (65 bytes) in base64url"
  try {
    ECDH.convertKey(bytes, "prime256v1")
    return undefined
  } catch {
    return "Must be a point on the curve P-256"
  }
}

export const checkAuth = (text: string): string | undefined =>
  bytesOf(text)?.length === 16 ? undefined : "Must be 16 bytes in base64url"
