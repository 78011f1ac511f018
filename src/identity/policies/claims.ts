// Reads the members of a token or of a provider's response. Pure.
import { type Invalid, invalidBecause, type Known } from "../policy.ts"
import { isUser, usableGroups, userFault, userTextOf } from "../principals.ts"

export type Claims = Readonly<Record<string, unknown>>

export const isClaims = (value: unknown): value is Claims =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** A member. A mail address counts only if the issuer verified it: anybody can enter any. */
const memberOf = (claims: Claims, name: string): unknown => {
  const isUnverified = name === "email" && claims["email_verified"] !== true
  return isUnverified || !Object.hasOwn(claims, name) ? undefined : claims[name]
}

/**
 * The member at a path: `realm_access.roles` is a member of a member. A name may hold dots, too.
 * An `email` without `email_verified` beside it is undefined.
 */
export const claimAt = (claims: Claims, path: string): unknown => {
  if (Object.hasOwn(claims, path)) return memberOf(claims, path)
  let found: unknown = claims
  for (const name of path.split(".")) {
    if (!isClaims(found)) return undefined
    found = memberOf(found, name)
  }
  return found
}

/** The groups of members at these paths: lists, or texts separated by blanks. */
const groupsAt = (claims: Claims, paths: ReadonlyArray<string>): ReadonlyArray<string> => {
  const texts = paths.flatMap((path) => {
    const found = claimAt(claims, path)
    if (typeof found === "string") return found.split(" ").filter((each) => each !== "")
    return Array.isArray(found) ? found.filter((each) => typeof each === "string") : []
  })
  return usableGroups(texts)
}

/** Why a text is no path of a claim. */
export const claimPathFault = (path: string): string | undefined =>
  path.length <= 200 && /^[!-~]+$/.test(path) ? undefined : "Expected the name of a claim"

/** The user whom claims name at a path, with the groups at others; or why there is none. */
export const knownAt = (
  claims: Claims,
  userPath: string,
  groupPaths: ReadonlyArray<string>
): Known | Invalid => {
  const user = userTextOf(claimAt(claims, userPath))
  return isUser(user)
    ? { _tag: "Known", user, groups: groupsAt(claims, groupPaths) }
    : invalidBecause(`the claim with the user's id ${userFault(user)}`)
}

export const lateFault = "exp is over"

/** Seconds by which the clock of an issuer may be ahead of ours. */
const nbfSkewSeconds = 5

/**
 * Why a token is not valid at `now` (milliseconds). Absent members pass (RFC 7662 section 2.2).
 */
export const timeFault = ({ exp, nbf }: Claims, now: number): string | undefined => {
  if (exp !== undefined && !(typeof exp === "number" && exp * 1000 > now)) return lateFault
  const isEarly =
    nbf !== undefined && !(typeof nbf === "number" && (nbf - nbfSkewSeconds) * 1000 <= now)
  return isEarly ? "nbf is not reached" : undefined
}

const textCharsMax = 200

/** The log cuts URLs to their hosts. Of issuers and audiences the rest counts, too. */
const loggable = (value: unknown): string => {
  const texts = [value].flat().filter((each) => typeof each === "string")
  const text = texts.join(" ").replaceAll("://", " ").slice(0, textCharsMax)
  return text === "" ? "none" : text
}

/** Issuer and audience of a token, for the log. */
export const partiesOf = ({ aud, iss }: Claims) => ({
  issuer: loggable(iss),
  audience: loggable(aud)
})

/** Whether one of the audiences is configured; `*`: any. */
export const isForUs = (aud: unknown, audiences: ReadonlyArray<string>): boolean => {
  if (audiences.includes("*")) return true
  const named = Array.isArray(aud) ? aud : [aud]
  return named.some((each) => typeof each === "string" && audiences.includes(each))
}
