// The ids of users and the principals of callers, made from what policies say.
import { domainToASCII } from "node:url"
import { textHmac } from "#basics/hmac.ts"

/** Separates this use of the user id secret from others. */
const purpose = "bellcast mail address"

/**
 * A mail address as Portier's brokers write it: in lower case, with the domain in ASCII. Then all
 * spellings of one address are one user.
 */
export const normalAddress = (address: string): string => {
  const at = address.lastIndexOf("@") + 1
  const domain = address.slice(at).toLowerCase()
  return `${address.slice(0, at).toLowerCase()}${domainToASCII(domain) || domain}`
}

/**
 * Replaces a user that holds a mail address by its HMAC: a user's id stands in responses, logs and
 * messages, where personal data must not be. All spellings of one address have the same.
 */
export const userNames = (secret: string): ((user: string) => string) => {
  const hmac = textHmac(textHmac(secret)(purpose, "hex"))
  return (user) => (user.includes("@") ? hmac(normalAddress(user), "hex") : user)
}

/** `<policy>:<user>` with a mail address replaced; any other principal as it is. */
export const principalNames = (secret: string): ((principal: string) => string) => {
  const nameOf = userNames(secret)
  return (principal) => {
    const colon = principal.indexOf(":")
    return colon < 0 || principal.startsWith("group:")
      ? principal
      : `${principal.slice(0, colon)}:${nameOf(principal.slice(colon + 1))}`
  }
}

/** Principals come from a user's claims: so many, of so many bytes. */
const groupsMax = 100
const groupBytesMax = 200

/**
 * The principals of a caller (contract section 7.1). Groups with blanks or control characters are
 * left out.
 */
export const principalsOf = (
  id: string,
  policy: string,
  groups: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const usable = groups.filter(
    (group) => /^[^\s,"\\\p{Cc}]+$/u.test(group) && Buffer.byteLength(group) <= groupBytesMax
  )
  const named = [...new Set(usable)].slice(0, groupsMax).map((group) => `group:${policy}:${group}`)
  return [id, "system.Everyone", "system.Authenticated", ...named]
}

const userBytesMax = 200

/** Whether a text can be a user: not empty, no control character, at most 200 bytes. */
export const isUser = (user: unknown): user is string =>
  typeof user === "string" &&
  user !== "" &&
  user.isWellFormed() &&
  !/\p{Cc}/u.test(user) &&
  Buffer.byteLength(user) <= userBytesMax
