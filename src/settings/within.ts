// Settings that are whole numbers within bounds; outside of them something would stand still or not fit.
import { Config, Schema } from "effect"

/** Of a wrong value, which is no secret here, at most so much is shown. */
const shownCharsMax = 40

/** The number behind a name. A fault says which numbers may stand there, and what does. */
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
