// The pseudonym of a user in subjects and keys. Only the holder of the secret can link it to the
// user.

import { textHmac } from "#basics/hmac.ts"
import type { UserToken } from "#streams/tokens.ts"

/** 22 base64url characters have 132 bits: two users never get the same pseudonym. */
const tokenLength = 22

/** A function from user ids to pseudonyms, by HMAC with a secret. */
export const pseudonyms = (secret: string): ((userId: string) => UserToken) => {
  const hmac = textHmac(secret)
  return (userId) => hmac(userId, "base64url").slice(0, tokenLength) as UserToken
}
