// The ids of users and the principals of callers, made from what policies say.
import { domainToASCII } from "node:url"
import { textHmac } from "#basics/hmac.ts"

/**
 * Separates this use of the user id secret from others. No colon: ids of basic auth are HMACs with
 * the secret itself, of texts with a colon that the client chooses.
 */
const purpose = "bellcast mail address"

/** With A to Z in lower case, and no other letter. */
const lowerAscii = (text: string): string =>
  text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())

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

/**
 * A mail address as Portier's brokers write it: in lower case, with the domain in ASCII. Then all
 * spellings of one address are one user.
 */
export const normalAddress = (address: string): string => {
  const at = address.lastIndexOf("@") + 1
  return address.slice(0, at).toLowerCase() + normalDomain(address.slice(at))
}

/**
 * The address as a user. Before the @ only A to Z become lower case: Unicode's lower case makes one
 * of mailboxes that differ, such as those with K and with the Kelvin sign. Portier's brokers write
 * to the address in lower case, so that their users have no other.
 */
const addressOfUser = (address: string): string => {
  const at = address.lastIndexOf("@") + 1
  return lowerAscii(address.slice(0, at)) + normalDomain(address.slice(at))
}

/**
 * Replaces a user that holds a mail address by its HMAC: a user's id stands in responses, logs and
 * messages, where personal data must not be. A to Z count as a to z.
 */
export const userNames = (secret: string): ((user: string) => string) => {
  const hmac = textHmac(textHmac(secret)(purpose, "hex"))
  return (user) => (user.includes("@") ? hmac(addressOfUser(user), "hex") : user)
}

/** `<policy>:<user>` or `group:<policy>:<name>` with a mail address replaced. */
export const principalNames = (secret: string): ((principal: string) => string) => {
  const nameOf = userNames(secret)
  return (principal) => {
    const [prefix = ""] = /^(?:group:)?[^:]*:/.exec(principal) ?? []
    return prefix === "" ? principal : prefix + nameOf(principal.slice(prefix.length))
  }
}

/** Principals come from a user's claims: so many, of so many bytes. */
const groupsMax = 100
const groupBytesMax = 200

/** The groups that can be principals: those with blanks or control characters are left out. */
export const usableGroups = (groups: ReadonlyArray<string>): ReadonlyArray<string> => {
  const usable = groups.filter(
    (group) => /^[^\s,"\\\p{Cc}]+$/u.test(group) && Buffer.byteLength(group) <= groupBytesMax
  )
  return [...new Set(usable)].slice(0, groupsMax)
}

/** The principals of a caller (contract section 7.1). */
export const principalsOf = (
  id: string,
  policy: string,
  groups: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const named = usableGroups(groups).map((group) => `group:${policy}:${group}`)
  return [id, "system.Everyone", "system.Authenticated", ...named]
}

/**
 * Whether a name has the form of an address's HMAC. Where users choose their names, one who took
 * the HMAC of somebody's address for a name would have that user's id.
 */
export const isLikeHmac = (name: string): boolean => /^[0-9a-f]{64}$/.test(name)

const userBytesMax = 200

/** Whether a text can be a user: not empty, no control character, at most 200 bytes. */
export const isUser = (user: unknown): user is string =>
  typeof user === "string" &&
  user !== "" &&
  user.isWellFormed() &&
  !/\p{Cc}/u.test(user) &&
  Buffer.byteLength(user) <= userBytesMax
