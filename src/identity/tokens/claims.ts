// Reads the members of a token or of a provider's response: user, groups, times, audiences and
// scopes. Pure.
import { isObject, type JsonObject } from "#basics/json.ts"
import { isUser, usableGroups, userFault, userTextOf } from "../principals.ts"
import { invalidBecause, type Verdict } from "../verdict.ts"

export type Claims = JsonObject

/**
 * The user whom claims name at a path, with the groups at others, until `exp` if there is one; or
 * why there is none.
 */
export const knownAt = (
  claims: Claims,
  userPath: string,
  groupPaths: ReadonlyArray<string>
): Verdict => {
  const { exp } = claims
  const user = userTextOf(claimAt(claims, userPath))
  if (!isUser(user)) return invalidBecause(`the claim with the user's id ${userFault(user)}`)
  const groups = usableGroups(groupPaths.flatMap((path) => textsOf(claimAt(claims, path))))
  return { _tag: "Known", user, groups, ...(typeof exp === "number" && { expiresAt: exp * 1000 }) }
}

/**
 * The member at a path: `realm_access.roles` is a member of a member. A name may hold dots, too.
 * An `email` without `email_verified` beside it is undefined.
 */
const claimAt = (claims: Claims, path: string): unknown => {
  if (Object.hasOwn(claims, path)) return memberOf(claims, path)
  let found: unknown = claims
  for (const name of path.split(".")) {
    if (!isObject(found)) return undefined
    found = memberOf(found, name)
  }
  return found
}

/** A member. A mail address counts only if the issuer verified it: anybody can enter any. */
const memberOf = (claims: Claims, name: string): unknown => {
  const isUnverified = name === "email" && claims["email_verified"] !== true
  return isUnverified || !Object.hasOwn(claims, name) ? undefined : claims[name]
}

/** The texts of a claim: a list, or one text with blanks between them (RFC 6749 section 3.3). */
export const textsOf = (claim: unknown): ReadonlyArray<string> => {
  if (typeof claim === "string") return claim.split(" ").filter((each) => each !== "")
  return Array.isArray(claim) ? claim.filter((each) => typeof each === "string") : []
}

/** Why a text is no path of a claim. */
export const claimPathFault = (path: string): string | undefined =>
  path.length <= 200 && /^[!-~]+$/.test(path) ? undefined : "Expected the name of a claim"

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

/** Whether one of the audiences is configured; `*`: any. */
export const isForUs = (aud: unknown, audiences: ReadonlyArray<string>): boolean =>
  audiences.includes("*") ||
  [aud].flat().some((each) => typeof each === "string" && audiences.includes(each))

const textCharsMax = 200

/** Issuer and audience of a token, for the log. */
export const partiesOf = ({ aud, iss }: Claims) => ({
  issuer: loggable(iss),
  audience: loggable(aud)
})

/** The log cuts URLs to their hosts. Of issuers and audiences the rest counts, too. */
const loggable = (value: unknown): string => {
  const texts = [value].flat().filter((each) => typeof each === "string")
  const text = texts.join(" ").replaceAll("://", " ").slice(0, textCharsMax)
  return text === "" ? "none" : text
}

/** Whether every required scope is covered by a provided one (contract section 7.4). */
export const coversAll = (
  provided: ReadonlyArray<string>,
  required: ReadonlyArray<string>
): boolean => required.every((scope) => provided.some((each) => covers(each, scope)))

const covers = (provided: string, required: string): boolean =>
  isUrl(provided) || isUrl(required)
    ? isUrl(provided) && isUrl(required) && coversUrl(provided, required)
    : coversName(provided, required)

const isUrl = (scope: string): boolean => scope.startsWith("https:")

/** Whether a URL covers another: a prefix of its path, up to a slash. Fragments must agree. */
const coversUrl = (provided: string, required: string): boolean => {
  const [has, needs] = [URL.parse(provided), URL.parse(required)]
  if (has === null || needs === null) return false
  const path = has.pathname.replace(/\/$/, "")
  return (
    has.origin === needs.origin &&
    has.hash === needs.hash &&
    has.search === needs.search &&
    (needs.pathname === has.pathname || needs.pathname.startsWith(`${path}/`))
  )
}

/** Whether a short name covers another: `a` covers `a:b`, but only `a:write` covers `a:b:write`. */
const coversName = (provided: string, required: string): boolean => {
  const [has, needs] = [partsOf(provided), partsOf(required)]
  return has.parts.every((part, i) => part === needs.parts[i]) && (!needs.writes || has.writes)
}

const partsOf = (scope: string) => {
  const parts = scope.split(":")
  const writes = parts.length > 1 && parts.at(-1) === "write"
  return { parts: writes ? parts.slice(0, -1) : parts, writes }
}
