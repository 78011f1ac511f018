// Makes texts and values safe for a log line or a terminal: without secrets, without characters
// that control a terminal, and cut where nobody would read on. Endpoints of subscriptions are
// bearer tokens (RFC 8030 section 8.3), and an error from deep below may carry one in its text.

/** Where to download a nats-server. Shown whole, as the only public URL in messages of our own. */
export const natsServerReleases = "https://github.com/nats-io/nats-server/releases"

const secretNames = new Set([
  "authorization",
  "endpoint",
  "keys",
  "auth",
  "p256dh",
  "privatekey",
  "token",
  "password",
  "secret"
])

/** Levels of nested objects that a line shows. */
const depthMax = 5

/** Items of a list, or fields of an object, that a line shows. */
const itemsMax = 50

const charsMax = 4_096

/** Nested causes of an error that a line shows. */
const causesMax = 4

/**
 * A field as a line may show it; `depth` limits nested objects. Used instead of pino's redaction,
 * which costs more than the rest of a line.
 */
export const fieldOf = (name: string, value: unknown, depth = depthMax): unknown => {
  if (secretNames.has(name.toLowerCase())) return "[redacted]"
  if (typeof value === "string") return withoutSecrets(value)
  return typeof value === "object" && value !== null ? objectFields(value, depth) : value
}

const objectFields = (value: object, depth: number): unknown => {
  if (value instanceof Error) return errorFields(value)
  // Bytes may be keys or payloads.
  if (depth === 0 || ArrayBuffer.isView(value)) return "[...]"
  if (value instanceof URL) return withoutSecrets(value.href)
  if (Array.isArray(value))
    return value.slice(0, itemsMax).map((inner) => fieldOf("", inner, depth - 1))
  const entries = Object.entries(value).slice(0, itemsMax)
  return Object.fromEntries(entries.map(([name, inner]) => [name, fieldOf(name, inner, depth - 1)]))
}

/** An error with its causes. The stack is shown for bugs, not for errors that name an operation. */
export const errorFields = (error: unknown, depth = 0): Record<string, unknown> => {
  if (!(error instanceof Error)) return { message: withoutSecrets(String(error)) }
  const { cause, code, name, operation } = error as Error & {
    code?: unknown
    operation?: unknown
    cause?: unknown
  }
  const fields: Record<string, unknown> = { type: name }
  if (operation !== undefined) fields["operation"] = fieldOf("", operation)
  if (code !== undefined) fields["code"] = fieldOf("", code)
  fields["message"] = withoutSecrets(error.message)
  if (cause !== undefined && depth < causesMax) fields["cause"] = errorFields(cause, depth + 1)
  if (depth === 0 && operation === undefined) fields["stack"] = withoutSecrets(error.stack ?? "")
  return fields
}

/**
 * The text with every URL cut to scheme and host: no path, no query, no password. A
 * percent-encoded URL is cut to its scheme. Long texts end in `...`.
 */
export const withoutSecrets = (given: string): string => {
  // Cut first, so that the regular expressions never see a text of any size.
  const text = given.includes("%")
    ? given.slice(0, 2 * charsMax).replace(escapedUrls, "$1$2...")
    : given
  const clean = text.includes("://") ? text.slice(0, 2 * charsMax).replace(urls, shortened) : text
  return clean.length <= charsMax ? clean : `${clean.slice(0, charsMax)}...`
}

/** A URL in a text: scheme, credentials, host without punctuation at its end, the rest. */
const urls = new RegExp(
  [
    String.raw`\b((?:https?|wss?|nats|tls):\/\/)`,
    String.raw`([^\s"'<>/?#]*@)?`,
    String.raw`([^\s"'<>/?#@,]*[^\s"'<>/?#@,.;:!)])?`,
    String.raw`([^\s"'<>]*)`
  ].join(""),
  "gi"
)

/** Harmless behind a host: the end of a sentence, the next item of a list. */
const punctuation = /^[/.,;:!?)]*$/

/** URLs inside a path or query: some clients take the endpoint for the id of a subscription. */
const escapedUrls = /(https?|wss?|nats|tls)(%3a(?:%2f|\/){2}|:%2f%2f)[^\s"'<>&]*/gi

const shortened = (
  url: string,
  scheme: string,
  credentials: string | undefined,
  host = "",
  rest: string
): string => {
  const isOurs = url.startsWith(natsServerReleases)
  if (isOurs && punctuation.test(url.slice(natsServerReleases.length))) return url
  return credentials === undefined && punctuation.test(rest)
    ? scheme + host + rest
    : `${scheme}${host}/...`
}

/**
 * Control characters, format characters such as marks that change the direction of text (UAX #9) or
 * that nobody sees, and separators that some programs take for the end of a line. With them a text
 * could control a terminal, forge a log line, or look like another one.
 */
const steering = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** The text on one line, with \u escapes for unsafe characters. */
export const printable = (text: string): string =>
  text.search(steering) === -1 ? text : text.replace(steering, escapeOf)

/** JSON on one line. JSON.stringify escapes only C0; more escapes do not change the value. */
export const printableJson = (value: unknown): string => printable(JSON.stringify(value))

/**
 * The beginning of a text that takes at most so many characters in a line of JSON. A control
 * character, such as a byte from 0x80 to 0x9f of a header, takes six.
 */
export const cutToPrinted = (text: string, charsMax: number): string => {
  if (text.length <= charsMax && printedChars(text) <= charsMax) return text
  let left = charsMax
  let end = 0
  for (const character of text) {
    left -= printedChars(character)
    if (left < 0) return text.slice(0, end)
    end += character.length
  }
  return text
}

/** Without the quotes. */
const printedChars = (text: string): number => printableJson(text).length - 2

/** JSON escapes characters beyond U+FFFF as two units. */
const escapeOf = (character: string): string =>
  character
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("")
