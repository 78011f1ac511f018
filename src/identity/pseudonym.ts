// How a user appears in subjects and keys: a pseudonym that only those who hold the secret can tie to the user.
import { createHmac } from "node:crypto"
import type { UserToken } from "#streams/tokens.ts"

/** 22 base64url characters carry 132 bits: enough that two users never meet. */
const tokenLength = 22

export const userToken = (userId: string, secret: string): UserToken =>
  createHmac("sha256", secret).update(userId, "utf8").digest("base64url").slice(0, tokenLength) as UserToken
