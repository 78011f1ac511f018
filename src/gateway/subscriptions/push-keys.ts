// Checks the keys of a subscription (RFC 8291) when it is stored, not at its first push.
import { ECDH } from "node:crypto"

/** Decodes both base64 alphabets, with or without padding: browsers and libraries differ. */
const bytesOf = (text: string): Buffer | undefined =>
  /^[A-Za-z0-9+/_-]+={0,2}$/.test(text) ? Buffer.from(text, "base64url") : undefined

/**
 * The error of a p256dh key. OpenSSL also takes compressed and hybrid points; browsers send none.
 */
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

/** The error of an auth secret. */
export const checkAuth = (text: string): string | undefined =>
  bytesOf(text)?.length === 16 ? undefined : "Must be 16 bytes in base64url"
