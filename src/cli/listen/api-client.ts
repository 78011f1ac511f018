// A client of the HTTP API: requests with credentials and a timeout, and errors that say what to
// do.
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import type * as HttpMethod from "effect/http/HttpMethod"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { printable } from "#telemetry/redaction.ts"

/** A request to the API failed. The message is printed. */
export class ApiError extends Schema.TaggedError<ApiError>()("ApiError", {
  message: Schema.String,
  /** Undefined: there was no response. */
  status: Schema.optionalKey(Schema.Int)
}) {}

const unreachable = (url: string) =>
  new ApiError({
    message:
      `no answer from ${url}: is the service running (make run), and is --url or ` +
      "BELLCAST_URL right?"
  })

/** There is no root resource at this address: another server, or a wrong path. */
export const foreign = (url: string) =>
  new ApiError({
    message:
      `${url} does not look like Bellcast (GET / was answered 404): is --url or ` +
      "BELLCAST_URL right?",
    status: 404
  })

/** The status is a success, but this version cannot decode the body. */
const notUnderstood = (call: string, status: number) =>
  new ApiError({
    message: `${call} was answered with an unexpected body: is this a Bellcast service?`,
    status
  })

export interface ApiOptions {
  /**
   * Base URL with the version, such as `http://127.0.0.1:9999/v1`, with or without a slash at the
   * end.
   */
  readonly url: string
  /** The value of Authorization. */
  readonly authorization: string
}

/** Longer than the 5 s for which the service lets a write wait for the projection. */
const responseTimeout = "10 seconds"
/** Time given to a service that is just starting. */
const startTimeout = "10 seconds"

const ErrorBody = Schema.Struct({
  error_code: Schema.optionalKey(Schema.String),
  error: Schema.optionalKey(Schema.String),
  message: Schema.optionalKey(Schema.String)
})

const refusal = (call: string, response: HttpClientResponse.HttpClientResponse) =>
  response.json.pipe(
    Effect.flatMap(Schema.decodeUnknownEffect(ErrorBody)),
    Effect.orElseSucceed((): typeof ErrorBody.Type => ({})),
    Effect.flatMap(({ error, error_code, message }) => {
      const { status } = response
      const code = error_code === undefined ? "" : `, ${printable(error_code)}`
      const reason = printable(message ?? error ?? "no reason given")
      return Effect.fail(
        new ApiError({ message: `${call} was answered ${status}${code}: ${reason}`, status })
      )
    })
  )

/** A client for one service and one user. `call` returns the decoded JSON of any 2xx response. */
export const makeApi = Effect.fnUntraced(function* ({ url, authorization }: ApiOptions) {
  const client = yield* HttpClient.HttpClient
  const base = url.replace(/\/+$/, "")

  const call = Effect.fnUntraced(
    function* <A>(
      method: HttpMethod.HttpMethod,
      path: string,
      expected: Schema.Decoder<A>,
      body?: unknown
    ) {
      const name = `${method} ${path}`
      const bare = HttpClientRequest.make(method)(base + path, {
        headers: { authorization, accept: "application/json" }
      })
      const request = body === undefined ? bare : HttpClientRequest.bodyJsonUnsafe(bare, body)
      const response = yield* client.execute(request).pipe(Effect.mapError(() => unreachable(base)))
      if (response.status < 200 || response.status > 299) return yield* refusal(name, response)
      return yield* response.json.pipe(
        Effect.flatMap(Schema.decodeUnknownEffect(expected)),
        Effect.mapError(() => notUnderstood(name, response.status))
      )
    },
    Effect.timeoutOrElse({
      duration: responseTimeout,
      orElse: () => Effect.fail(unreachable(base))
    })
  )

  /** Retries for 10 s while the service starts: no response, or 503. */
  const whileStarting = <A>(effect: Effect.Effect<A, ApiError>): Effect.Effect<A, ApiError> =>
    Effect.retry(effect, {
      schedule: Schedule.spaced("250 millis").pipe(Schedule.upTo({ duration: startTimeout })),
      while: ({ status }) => status === undefined || status === 503
    })

  return { call, whileStarting }
})
