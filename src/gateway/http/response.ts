// The bodies of error responses, and how a request ends with one.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { apiErrors, type ErrorCode, parserErrors, phraseOf, type Row } from "./error-table.ts"
import { type ApiResponse, Refused } from "./request.ts"

interface Extra {
  readonly details?: unknown
  readonly info?: string
  readonly message?: string
  readonly headers?: Readonly<Record<string, string>>
}

export const errorResponse = (
  error_code: ErrorCode,
  { headers = {}, ...extra }: Extra = {}
): ApiResponse => {
  const row: Row = apiErrors[error_code]
  const { errno, message, status } = row
  // JSON leaves out a message that is undefined.
  const body = { code: status, errno, error_code, error: phraseOf(row), message, ...extra }
  return { status, headers, body, error: error_code }
}

/** The error response for an error of the parser of Node.js. */
export const parserErrorResponse = (code: string): ApiResponse =>
  errorResponse(Object.hasOwn(parserErrors, code) ? parserErrors[code]! : "not-http")

/** The header Retry-After for a known wait, rounded up to seconds. */
export const retryAfter = (waitMillis: number) => ({
  headers: { "Retry-After": String(Math.ceil(waitMillis / 1000)) }
})

export const refuse = (code: ErrorCode, extra?: Extra): Refused =>
  new Refused({ response: errorResponse(code, extra) })

/** One entry of an error's `details`. A null name means the whole location. */
export const ErrorDetail = Schema.Struct({
  location: Schema.Literals(["body", "querystring", "header", "path"]),
  name: Schema.NullOr(Schema.String),
  description: Schema.String
}).annotate({ identifier: "ErrorDetail" })
export type ErrorDetail = typeof ErrorDetail.Type

export const errorIn = (
  location: ErrorDetail["location"],
  name: string | null,
  description: string
): ErrorDetail => ({ location, name, description })

const sortKey = ({ name }: ErrorDetail): string => name ?? "None"

/** The `message` of an error response: a sentence about its first detail. */
const messageOf = ({ description, location, name }: ErrorDetail): string => {
  if (name === null) return `${location}: ${description}`
  return description.includes(name) ? description : `${name} in ${location}: ${description}`
}

/** Errors that a response lists: the names of 3,000 users may each be one. */
const detailsMax = 100

/** One error response for the errors of a request, sorted by name. */
export const refuseInvalid = (
  list: ReadonlyArray<ErrorDetail>,
  as?: "not-acceptable" | "unsupported-media-type"
): Refused => {
  const details = [...list]
    .sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : sortKey(a) > sortKey(b) ? 1 : 0))
    .slice(0, detailsMax)
  const first = details[0]!
  return refuse(as ?? (first.location === "body" ? "invalid-body" : "invalid-request"), {
    message: messageOf(first),
    details
  })
}

export const badId = errorIn("path", null, "Invalid object id")

/** Ends the request with this response, if there is one. */
export const checked = (refused: Refused | undefined): Effect.Effect<void, Refused> =>
  refused ?? Effect.void
