// The form of our own tokens: `bellcast_`, 32 random bytes in base62, and a checksum. Secret
// scanners find them by the prefix, and the checksum tells them from other texts and shows typing
// errors without a look-up. Tokens of GitHub and npm have the same form.
import { createHash, randomBytes } from "node:crypto"
import { crc32 } from "node:zlib"

/** Tokens of the policy `token` begin so. They go to no other policy, even where it is off. */
export const ownTokenPrefix = "bellcast_"

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const base = BigInt(digits.length)
/** 62^43 > 2^256, and 62^6 > 2^32. */
const randomLength = 43
const checksumLength = 6

/** In base62, filled up with zeros. */
const base62 = (value: bigint, length: number): string => {
  let text = ""
  for (let rest = value; rest > 0n; rest /= base) text = digits[Number(rest % base)] + text
  return text.padStart(length, "0")
}

/** The CRC-32 of the random digits. */
const checksumOf = (random: string): string => base62(BigInt(crc32(random)), checksumLength)

/** The token of 32 random bytes. */
export const tokenOf = (bytes: Uint8Array): string => {
  const random = base62(BigInt(`0x${Buffer.from(bytes).toString("hex")}`), randomLength)
  return ownTokenPrefix + random + checksumOf(random)
}

export const freshToken = (): string => tokenOf(randomBytes(32))

const form = new RegExp(
  `^${ownTokenPrefix}([0-9A-Za-z]{${randomLength}})([0-9A-Za-z]{${checksumLength}})$`
)

/** Whether a text has the form of a token and the right checksum. */
export const isOwnToken = (text: string): boolean => {
  const [, random = "", checksum] = form.exec(text) ?? []
  return checksum === checksumOf(random)
}

/**
 * The stored hash of a token. One round of SHA-256 suffices: slow hashes with a salt protect
 * passwords, which people choose; nobody guesses 256 random bits.
 */
export const hashOfToken = (token: string): string =>
  createHash("sha256").update(token).digest("base64url")
