// How a user appears in subjects and keys: a pseudonym that only those who hold the secret can tie to the user.
import type { UserToken } from "#streams/tokens.ts"
import { hmacSha256 } from "./hmac.ts"

/** 22 base64url characters carry 132 bits: enough that two users never meet. */
const tokenLength = 22

/** The pseudonyms of users under a secret. */
export const pseudonyms = (secret: string): ((userId: string) => UserToken) => {
  const hmac = hmacSha256(secret)
  return (userId) => hmac(userId, "base64url").slice(0, tokenLength) as UserToken
}
