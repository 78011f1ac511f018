// Which policies are asked about a request. A token goes to the one policy that it names, so that a
// secret of ours never reaches somebody else's server.
import type { Credentials, Policy } from "./policy.ts"

/** Tokens of the policy `token` begin so. They go to no other policy, even where it is off. */
export const ownTokenPrefix = "bellcast_"

/** The policies to ask, in order. */
export const candidates = (
  policies: ReadonlyArray<Policy>,
  { scheme, token }: Credentials
): ReadonlyArray<Policy> => {
  if (scheme !== "bearer") return policies.filter(({ bearer }) => bearer === undefined)
  const named = policies.find(({ bearer }) => bearer?.kind === "local" && bearer.isFor(token))
  if (named !== undefined) return [named]
  return token.startsWith(ownTokenPrefix)
    ? []
    : policies.filter(({ bearer }) => bearer?.kind !== "local")
}
