// Parameters of a query string that may stand there once.
import { type ErrorDetail, errorIn } from "../http/errors.ts"
import { queryPairs } from "./query.ts"

const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/i

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
      const millis = rfc3339.test(value) ? Date.parse(value) : Number.NaN
      if (Number.isNaN(millis)) refuse(name, "expected a time of RFC 3339")
      return millis
    }
  }
}
