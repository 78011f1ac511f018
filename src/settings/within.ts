// Settings that are whole numbers within bounds.
import * as Config from "effect/Config"
import * as Schema from "effect/Schema"

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
