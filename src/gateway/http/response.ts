// A response of the API, independent of Node.js: a success, or an error of the table, by which a
// request ends.
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { apiErrors, type ErrorCode, parserErrors, phraseOf, type Row } from "./error-table.ts"

/** Sends text of a stream. Returns when the client, or the kernel for it, has taken the text. */
export type Write = (text: string) => Effect.Effect<void>

export interface ApiResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Sent as JSON; undefined: no body. */
  readonly body?: unknown
  /** JSON text that is sent instead of `body`. */
  readonly jsonText?: string
  /** Text that is sent instead of `body`; `headers` hold its Content-Type. */
  readonly text?: string
  /** Bytes that are sent instead of `text`; `headers` hold their Content-Encoding. */
  readonly encoded?: Uint8Array
  /** Sends the body piece by piece instead, and returns at its end. */
  readonly events?: (write: Write) => Effect.Effect<void>
  /** Unset on success. */
  readonly error?: ErrorCode
  /** The target that routing leads to, which a batch follows. No other redirect is one of ours. */
  readonly movedTo?: string
  /** The id of a broadcast that was accepted, for the log. */
  readonly broadcast?: number
  /** The number of entries of a batch, for the log. */
  readonly batchSize?: number
  /** An error of the server or of the storage: a batch stops at this response. */
  readonly aborts?: true
}

export const ok = (
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
  status = 200
): ApiResponse => ({
  status,
  headers,
  body
})

/** A response of JSON text; undefined: only headers, for HEAD. */
export const jsonResponse = (
  jsonText: string | undefined,
  headers: Readonly<Record<string, string>> = {}
): ApiResponse => ({
  status: 200,
  headers: { ...headers, "Content-Type": "application/json; charset=UTF-8" },
  ...(jsonText === undefined ? {} : { jsonText })
})

/** Ends a request with a response, mostly an error from error-table.ts. */
export class Refused extends Data.TaggedError("Refused")<{ readonly response: ApiResponse }> {}

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
