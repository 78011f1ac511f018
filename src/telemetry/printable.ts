// Makes texts from clients, publishers and push services safe for a log or a terminal. Pure.

/**
 * Control characters (C0, DEL, C1), marks that change the direction of text (UAX #9), and
 * separators that some programs take for the end of a line. With them a text could control a
 * terminal or forge a log line.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must be found
const steering = /[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

const escapeOf = (character: string): string =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`

/** The text on one line, with \u escapes for unsafe characters. */
export const printable = (text: string): string =>
  text.search(steering) === -1 ? text : text.replace(steering, escapeOf)

/** JSON on one line. JSON.stringify escapes only C0; more escapes do not change the value. */
export const printableJson = (value: unknown): string => printable(JSON.stringify(value))
