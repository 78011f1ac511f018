// The forms of values that settings have: texts, secrets, lists of words, and whole numbers within
// bounds.
import * as Config from "effect/Config"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"

/** Why a text cannot be used. Undefined: it can. */
type FaultOf = (text: string) => string | undefined

/** The setting of a name, if `faultOf` finds no fault in it. */
export const checkedText = (name: string, faultOf: FaultOf): Config.Config<string> =>
  Config.schema(Schema.String.pipe(Schema.check(Schema.makeFilter(faultOf))), name)

/** RFC 2104 section 3: a key of the size of the hash. Shorter ones could be guessed. */
export const secretBytesMin = 32

/** The secret of a name, of at least 32 bytes. */
export const secret = (name: string): Config.Config<Redacted.Redacted<string>> =>
  checkedText(name, (text) =>
    Buffer.byteLength(text) < secretBytesMin
      ? `Expected at least ${secretBytesMin} bytes`
      : undefined
  ).pipe(Config.map((text) => Redacted.make(text)))

/** Characters of a wrong value that a message shows. Numbers are no secrets. */
const shownCharsMax = 40

/** The setting of a name. A fault says the bounds and the wrong value. */
export const within = (name: string, minimum: number, maximum: number): Config.Config<number> => {
  const fault = (text: string): string | undefined => {
    const number = text.trim() === "" ? Number.NaN : Number(text)
    if (Number.isInteger(number) && number >= minimum && number <= maximum) return undefined
    const shown = text.length > shownCharsMax ? `${text.slice(0, shownCharsMax)}...` : text
    return `Expected a whole number from ${minimum} to ${maximum}, not ${JSON.stringify(shown)}`
  }
  return Config.schema(
    Schema.String.pipe(
      Schema.check(Schema.makeFilter(fault)),
      Schema.decodeTo(Schema.FiniteFromString)
    ),
    name
  )
}

/** Words between blanks or commas, none by default. The first faulty word is named. */
export const words = (
  name: string,
  faultOf: FaultOf = noFault
): Config.Config<ReadonlyArray<string>> =>
  listOf(name, faultOf, 0).pipe(Config.withDefault(""), Config.map(wordsOf))

/** Words between blanks or commas, at least one. The first faulty word is named. */
export const someWords = (
  name: string,
  faultOf: FaultOf = noFault
): Config.Config<ReadonlyArray<string>> => listOf(name, faultOf, 1).pipe(Config.map(wordsOf))

const noFault: FaultOf = () => undefined

const wordsOf = (text: string) => text.split(/[\s,]+/).filter((word) => word !== "")

const listOf = (name: string, faultOf: FaultOf, wordsMin: number): Config.Config<string> => {
  const faultOfList = (text: string) => {
    const given = wordsOf(text)
    if (given.length < wordsMin) return "Expected at least one word, not only blanks or commas"
    const at = given.findIndex((word) => faultOf(word) !== undefined)
    const wrong = given[at]
    if (wrong === undefined) return undefined
    // The log must hold no mail address, and no login of a URL.
    const shown = wrong.includes("@") ? `item ${at + 1}` : JSON.stringify(wrong.slice(0, 80))
    return `${shown}: ${faultOf(wrong)}`
  }
  return checkedText(name, faultOfList)
}
