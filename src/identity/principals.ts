// Names made of what policies say, by HMACs with the user id secret: the ids of users without mail
// addresses, the principals of callers, and the pseudonyms in subjects and keys.
import { domainToASCII } from "node:url"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { textHmac } from "#basics/hmac.ts"
import { Settings } from "#config"
import type { UserToken } from "#streams/tokens.ts"

/**
 * Replaces a user that holds a mail address by @ and its HMAC: a user's id stands in responses,
 * logs and messages, where personal data must not be. A to Z count as a to z. What is replaced
 * already stays.
 */
export const userNames = (secret: string): ((user: string) => string) => {
  const hmac = hmacFor(secret, "bellcast mail address")
  return (user) =>
    user.includes("@") && !isAddressHmac(user) ? `@${hmac(addressOfUser(user), "hex")}` : user
}

/** `<policy>:<user>` or `group:<policy>:<name>` with a mail address replaced. */
export const principalNames = (secret: string): ((principal: string) => string) => {
  const nameOf = userNames(secret)
  return (principal) => {
    const [prefix = ""] = /^(?:group:)?[^:]*:/.exec(principal) ?? []
    return prefix === "" ? principal : prefix + nameOf(principal.slice(prefix.length))
  }
}

/**
 * Whether a name is the HMAC of an address. The @ marks it: every other name with an @ is replaced,
 * and policies refuse this one, so nobody who chooses a name can have somebody else's id.
 */
export const isAddressHmac = (name: string): boolean => /^@[0-9a-f]{64}$/.test(name)

/**
 * The address as a user. Before the @ only A to Z become lower case: Unicode's lower case makes one
 * of mailboxes that differ, such as those with K and with the Kelvin sign. Portier's brokers write
 * to the address in lower case, so that their users have no other.
 */
const addressOfUser = (address: string): string => normalWith(address, lowerAscii)

/**
 * A mail address as Portier's brokers write it: in lower case, with the domain in ASCII. Then all
 * spellings of one address are one user.
 */
export const normalAddress = (address: string): string =>
  normalWith(address, (local) => local.toLowerCase())

const normalWith = (address: string, lower: (local: string) => string): string => {
  const at = address.lastIndexOf("@") + 1
  return lower(address.slice(0, at)) + normalDomain(address.slice(at))
}

/**
 * The domain of an address in ASCII: DNS knows no other spelling. `domainToASCII` reads more than
 * domains: in `example.org/x` it stops at the slash, in `ex%61mple.org` it decodes, and it takes
 * `010` for an IPv4 address. Users with such texts must not become one, so those stay as they are.
 */
const normalDomain = (text: string): string => {
  const domain = lowerAscii(text)
  const isAscii = /^[ -~]*$/.test(domain)
  if (isAscii || !/^[a-z0-9.\u0080-\u{10ffff}-]+$/u.test(domain)) return domain
  const ascii = domainToASCII(domain)
  return ascii === "" || /^[\d.]+$/.test(ascii) ? domain : ascii
}

/** With A to Z in lower case, and no other letter. */
const lowerAscii = (text: string): string =>
  text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())

/** Principals come from a user's claims: so many, of so many bytes. */
export const groupsMax = 100
const groupBytesMax = 200

/** Characters that nobody sees. Users whose names differ in them would look the same. */
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u

/**
 * The groups of a policy that can be principals. Those with blanks or unseen characters, and those
 * that look like the HMAC of an address, are left out.
 */
export const usableGroups = (groups: ReadonlyArray<string>): ReadonlyArray<string> => {
  const usable = groups.filter(
    (group) =>
      /^[^\s,"\\]+$/.test(group) &&
      !unseen.test(group) &&
      !isAddressHmac(group) &&
      Buffer.byteLength(group) <= groupBytesMax
  )
  return [...new Set(usable)].slice(0, groupsMax)
}

/** The principals of a caller (contract section 7.1). `groups`: usable, without addresses. */
export const principalsOf = (
  id: string,
  policy: string,
  groups: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const named = [...new Set(groups)].map((group) => `group:${policy}:${group}`)
  return [id, "system.Everyone", "system.Authenticated", ...named]
}

const userBytesMax = 200

export const isUser = (user: unknown): user is string => userFault(user) === undefined

/** Why a value of a policy is no user; undefined: it is one. Speaks of "the id". */
export const userFault = (user: unknown): string | undefined => {
  if (user === undefined) return "is missing (an email counts only if it is verified)"
  if (typeof user !== "string") return "must be a string or a whole number"
  if (user === "" || Buffer.byteLength(user) > userBytesMax)
    return `must have 1 to ${userBytesMax} bytes`
  if (unseen.test(user) || !user.isWellFormed()) return "must have no control or format characters"
  return isAddressHmac(user) ? "must not look like the HMAC of an address" : undefined
}

/**
 * The id that a value of a policy says. Backends write the numbers of their users as numbers, too:
 * 42 and "42" are one user.
 */
export const userTextOf = (value: unknown): unknown =>
  Number.isSafeInteger(value) ? String(value) : value

/** 22 base64url characters have 132 bits: two users never get the same pseudonym. */
const tokenLength = 22

/**
 * A function from user ids to pseudonyms, which only the holder of the secret can link to users.
 * With the secret itself for a key, a user name and a password of basic auth, which anybody may
 * choose, would yield the pseudonym of anybody.
 */
export const pseudonyms = (secret: string): ((userId: string) => UserToken) => {
  const hmac = hmacFor(secret, "bellcast pseudonym")
  return (userId) => hmac(userId, "base64url").slice(0, tokenLength) as UserToken
}

/** The secret; "" where none is set. */
export const useridSecret = Effect.map(Settings, ({ useridHmacSecret }) =>
  Option.match(useridHmacSecret, { onNone: () => "", onSome: Redacted.value })
)

/**
 * The HMAC with a key that is derived from the secret for one purpose. No colon in the purpose: ids
 * of basic auth are HMACs with the secret itself, of texts with a colon that the client chooses.
 */
export const hmacFor = (secret: string, purpose: string): ReturnType<typeof textHmac> =>
  textHmac(textHmac(secret)(purpose, "hex"))
