// Parameters of a query string that may stand there once.
import { millisOf } from "#domain/timestamp.ts"
import { type ErrorDetail, errorIn } from "../http/errors.ts"
import { queryPairs } from "./query.ts"

/** Functions that read one parameter each, and add what is wrong with it to `errors`. */
export const singles = (query: string, errors: Array<ErrorDetail>) => {
  const pairs = queryPairs(query) ?? []
  const refuse = (name: string, text: string) =>
    void errors.push(errorIn("querystring", name, `Invalid value for ${name}: ${text}`))
  const text = (name: string): string | undefined => {
    const values = pairs.filter(([each]) => each === name).map(([, value]) => value)
    if (values.length > 1) refuse(name, "give it once")
    return values[0]
  }
  return {
    refuse,
    text,
    oneOf: <A extends string>(name: string, all: ReadonlyArray<A>): A | undefined => {
      const value = text(name)
      const found = all.find((each) => each === value)
      if (value !== found) refuse(name, `expected one of ${all.join(", ")}`)
      return found
    },
    /** Milliseconds since the epoch. */
    time: (name: string): number | undefined => {
      const value = text(name)
      if (value === undefined) return undefined
      const millis = millisOf(value)
      if (millis === undefined) refuse(name, "expected a time of RFC 3339")
      return millis
    }
  }
}
