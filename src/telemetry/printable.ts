// Makes texts from clients, publishers and push services safe for a log or a terminal. Pure.

/**
 * Control characters, format characters such as marks that change the direction of text (UAX #9) or
 * that nobody sees, and separators that some programs take for the end of a line. With them a text
 * could control a terminal, forge a log line, or look like another one.
 */
const steering = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** JSON escapes characters beyond U+FFFF as two units. */
const escapeOf = (character: string): string =>
  character
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("")

/** The text on one line, with \u escapes for unsafe characters. */
export const printable = (text: string): string =>
  text.search(steering) === -1 ? text : text.replace(steering, escapeOf)

/** JSON on one line. JSON.stringify escapes only C0; more escapes do not change the value. */
export const printableJson = (value: unknown): string => printable(JSON.stringify(value))

/** Without the quotes. */
const printedChars = (text: string): number => printableJson(text).length - 2

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
