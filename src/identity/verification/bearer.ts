// Which policies are asked about a request. A token goes to the policies that it names, so that a
// secret of ours never reaches somebody else's server.

import type { Policy } from "../policy.ts"
import { ownTokenPrefix } from "../tokens/own-token.ts"
import type { Credentials } from "../verdict.ts"

/**
 * RFC 6750 section 2.1. Other texts are not sent or decoded: decoders of base64 skip blanks, so a
 * valid token would have any number of spellings, each with a verification of its own.
 */
const isWellFormed = (token: string): boolean => /^[A-Za-z0-9._~+/-]+=*$/.test(token)

/** The policies to ask, in order. */
export const candidates = (
  policies: ReadonlyArray<Policy>,
  { scheme, token }: Credentials
): ReadonlyArray<Policy> => {
  if (scheme !== "bearer" || !isWellFormed(token))
    return policies.filter(({ bearer }) => bearer === undefined)
  const named = policies.filter(({ bearer }) => bearer?.kind === "local" && bearer.isFor(token))
  if (named.length > 0) return named
  return token.startsWith(ownTokenPrefix)
    ? []
    : policies.filter(({ bearer }) => bearer?.kind !== "local")
}
