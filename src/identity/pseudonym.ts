// The pseudonym of a user in subjects and keys. Only the holder of the secret can link it to the
// user.
import type { UserToken } from "#streams/tokens.ts"
import { hmacFor } from "./secret-hmacs.ts"

/** 22 base64url characters have 132 bits: two users never get the same pseudonym. */
const tokenLength = 22

/**
 * A function from user ids to pseudonyms. With the secret itself for a key, a user name and a
 * password of basic auth, which anybody may choose, would yield the pseudonym of anybody.
 */
export const pseudonyms = (secret: string): ((userId: string) => UserToken) => {
  const hmac = hmacFor(secret, "bellcast pseudonym")
  return (userId) => hmac(userId, "base64url").slice(0, tokenLength) as UserToken
}
