// The pseudonym of a user in subjects and keys. Only the holder of the secret can link it to the
// user.

import { textHmac } from "#basics/hmac.ts"
import type { UserToken } from "#streams/tokens.ts"

/** 22 base64url characters have 132 bits: two users never get the same pseudonym. */
const tokenLength = 22

/** Separates this use of the user id secret from others. */
const purpose = "bellcast pseudonym"

/**
 * A function from user ids to pseudonyms, by HMAC with a secret. Users of basic auth keep those of
 * 0.1.0, which have the secret itself for a key, as their ids have. Others have a key of their own:
 * else a user name and a password, which anybody may choose, would yield the pseudonym of anybody.
 */
export const pseudonyms = (secret: string): ((userId: string, verified: boolean) => UserToken) => {
  const [ofVerified, ofOthers] = [textHmac(textHmac(secret)(purpose, "hex")), textHmac(secret)]
  return (userId, verified) => {
    const hmac = verified ? ofVerified : ofOthers
    return hmac(userId, "base64url").slice(0, tokenLength) as UserToken
  }
}
