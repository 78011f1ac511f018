import { hash } from "node:crypto"

// JSON values, and JSON texts from outside with a bound on nesting: deeper ones would overflow the
// stack of code that walks them recursively. Pure.

export type JsonObject = Readonly<Record<string, unknown>>

/** Whether a value is an object of JSON: no array, not null. */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** JSON without white space and with sorted keys: the same text for equal values. */
export const canonicalJson = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`
  if (!isObject(value)) return JSON.stringify(value)
  return `{${Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`)
    .join()}}`
}

export const depthMax = 100

const space = 0x20
const quote = 0x22
const backslash = 0x5c
const opening = new Set([0x5b, 0x7b])
const closing = new Set([0x5d, 0x7d])

/** Whether a text has at most `depthMax` opening brackets, so that it cannot be too deep. Fast. */
const isShallow = (text: string): boolean => {
  let count = 0
  for (const bracket of "{[") {
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1))
      if (++count > depthMax) return false
  }
  return true
}

/** Returns the index of the quote that ends a string, or the length of a text that ends before. */
const endOfString = (text: string, start: number): number => {
  let i = start + 1
  while (i < text.length && text.charCodeAt(i) !== quote)
    i += text.charCodeAt(i) === backslash ? 2 : 1
  return i
}

/**
 * Whether objects and lists are nested deeper than `depthMax`. Brackets in strings do not count.
 */
const isTooDeep = (text: string): boolean => {
  if (isShallow(text)) return false
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === quote) i = endOfString(text, i)
    else if (opening.has(code)) depth++
    else if (closing.has(code)) depth--
    if (depth > depthMax) return true
  }
  return false
}

/** Returns the value of a text, or why it has none. */
export const parseJson = (text: string): { readonly json: unknown } | "malformed" | "deep" => {
  if (isTooDeep(text)) return "deep"
  try {
    return { json: JSON.parse(text) as unknown }
  } catch {
    return "malformed"
  }
}

const integer = /^-?\d+$/
/**
 * Whether a number that is not 0 is an integer, however it is written: 1.50e1 is, 1.55e1 is not.
 * Of a text of a million digits, too, in one pass.
 */
const isInteger = (number: string): boolean => {
  const [mantissa = "", exponent = "0"] = number.toLowerCase().split("e", 2)
  const [whole = "", fraction = ""] = mantissa.split(".", 2)
  let zeros = 0
  let places = fraction.length
  while (places > 0 && fraction[places - 1] === "0") places--
  if (places === 0) while (zeros < whole.length && whole[whole.length - 1 - zeros] === "0") zeros++
  return Number(exponent) >= (places > 0 ? places : -zeros)
}

/** Digits of a number that decide its value, whatever their place: those of 0.0120e5 are 12. */
const digitsOf = (number: string): string => {
  const digits = number.toLowerCase().split("e", 1)[0]!.replace(/[.-]/g, "")
  let [start, end] = [0, digits.length]
  while (digits[start] === "0") start++
  while (end > start && digits[end - 1] === "0") end--
  return digits.slice(start, end)
}

const shownCharsMax = 64
const shown = (text: string): string =>
  text.length > shownCharsMax ? `${text.slice(0, shownCharsMax)}...` : text

/**
 * How JavaScript, here and in browsers, changes a number against its author's intent. Undefined:
 * not at all. Rounding a fraction to the nearest double is no such change, nor is an integer that
 * JavaScript itself writes with these digits.
 */
const numberLoss = (number: string): string | undefined => {
  if (number.length <= 15 && integer.test(number)) return undefined
  const value = Number(number)
  if (!Number.isFinite(value)) return `the number ${shown(number)} is too large`
  if (value === 0)
    return digitsOf(number) === "" ? undefined : `the number ${shown(number)} is too small`
  return isInteger(number) && digitsOf(String(value)) !== digitsOf(number)
    ? `the number ${shown(number)} would become ${value}: write it as a string`
    : undefined
}

/** The value of a string with its quotes. Most have no escape. */
const nameIn = (string: string): string =>
  string.includes("\\") ? (JSON.parse(string) as string) : string.slice(1, -1)

/** Whether the string that ends at `end` of well-formed JSON is the name of a member. */
const isName = (text: string, end: number): boolean => {
  let i = end + 1
  while (text.charCodeAt(i) <= space) i++
  return text[i] === ":"
}

const endOfNumber = (text: string, start: number): number => {
  let i = start + 1
  while (i < text.length && "0123456789.eE+-".includes(text[i]!)) i++
  return i
}

/**
 * The names with their quotes, the numbers, and the ends of objects of well-formed JSON. No pattern
 * finds them in linear time: a string may have any number of escapes.
 */
const tokensIn = function* (text: string): Generator<string> {
  for (let i = 0; i < text.length; i++) {
    const char = text[i]!
    if (char === "{" || char === "}") yield char
    else if (char === '"') {
      const end = endOfString(text, i)
      if (isName(text, end)) yield text.slice(i, end + 1)
      i = end
    } else if ("-0123456789".includes(char)) {
      const end = endOfNumber(text, i)
      yield text.slice(i, end)
      i = end - 1
    }
  }
}

/**
 * The loss when a JSON text is read: the digits of a number, or all but the last of members with
 * one name. Undefined: none. `text` is well-formed.
 */
const lossIn = (text: string): string | undefined => {
  const objects: Array<Set<string>> = []
  for (const token of tokensIn(text)) {
    if (token === "{") objects.push(new Set())
    else if (token === "}") objects.pop()
    else if (token.startsWith('"')) {
      const names = objects.at(-1)!
      const name = nameIn(token)
      if (names.has(name)) return `the name ${JSON.stringify(shown(name))} stands twice`
      names.add(name)
    } else {
      const loss = numberLoss(token)
      if (loss !== undefined) return loss
    }
  }
  return undefined
}

/**
 * As `parseJson`, for values that are stored or handed on: a text of which something would be lost
 * has a reason instead of a value.
 */
export const parseWhole = (
  text: string
): ReturnType<typeof parseJson> | { readonly loss: string } => {
  const parsed = parseJson(text)
  const loss = typeof parsed === "string" ? undefined : lossIn(text)
  return loss === undefined ? parsed : { loss }
}

/** The object of a text; undefined for any other text. */
export const jsonObjectOf = (text: string): JsonObject | undefined => {
  const parsed = parseJson(text)
  return typeof parsed === "object" && isObject(parsed.json) ? parsed.json : undefined
}

/**
 * JSON with all characters beyond printable ASCII escaped, unlike JSON.stringify. Ids are hashes of
 * this form, and headers allow no other.
 */
export const asciiJson = (value: unknown): string =>
  JSON.stringify(value).replace(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`
  )

/** SHA-256, in hex, of a value as a JSON text in ASCII. */
export const jsonHash = (value: unknown): string => hash("sha256", asciiJson(value), "hex")
