// Answers requests of internal services on NATS (streams/README.md): makes each an ApiRequest, runs
// the pipeline, and responds with what a client of HTTP gets.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { makeShares } from "#basics/limits.ts"
import { Settings } from "#config"
import type { WantedState } from "#domain/broadcast-state.ts"
import { Micro, type MicroRequest, type MicroResponse } from "#nats/connection/micro.ts"
import { subjects } from "#streams/subjects.ts"
import { reasonPhrase } from "../http/error-table.ts"
import { maxHeaderSize } from "../http/node-http.ts"
import { type ApiRequest, BodyTooLarge, readBody, readForm } from "../http/request.ts"
import {
  type ApiResponse,
  type ErrorDetail,
  errorIn,
  errorResponse,
  type Refused,
  refuseInvalid
} from "../http/response.ts"
import { projectVersion, versionPrefix } from "../http/version.ts"
import { Gateway } from "../operation.ts"

/** How long a request may take. As over HTTP, a write may be stored all the same. */
const requestMillis = 10_000
/** Bytes of a body: the largest of the API. NATS bounds the whole message (`max_payload`). */
const bodyBytesMax = 256 * 1024
/** Bodies of 16 KiB: a draft may take two, and of a body in which it stands a few bytes more. */
const membersMax = 3
/** Requests under way at once, of one source and of all: 32 MiB of bodies. */
const atOnceMax = { ofSource: 32, ofAll: 128 }

interface NatsOperation {
  readonly name: string
  readonly method: string
  /** Without the version. `:name` stands for a member of the body. */
  readonly path: string
  /** The body over HTTP, where the body on NATS only names parts of the path. */
  readonly body?: unknown
  /** Whether the members beside those of the path are the body of a PUT. */
  readonly isBody?: boolean
}

const changing = (name: string, state: WantedState): NatsOperation => ({
  name,
  method: "PATCH",
  path: "/broadcasts/:broadcast",
  body: { data: { state } }
})

const operations: ReadonlyArray<NatsOperation> = [
  { name: "publish", method: "POST", path: "/broadcasts" },
  { name: "publish-channel", method: "POST", path: "/channels/:channel" },
  { name: "broadcast", method: "GET", path: "/broadcasts/:broadcast" },
  { name: "broadcasts", method: "GET", path: "/broadcasts" },
  { name: "drafts", method: "GET", path: "/drafts" },
  { name: "draft", method: "GET", path: "/drafts/:draft" },
  { name: "draft-put", method: "PUT", path: "/drafts/:draft", isBody: true },
  { name: "draft-delete", method: "DELETE", path: "/drafts/:draft" },
  { name: "draft-publish", method: "POST", path: "/drafts/:draft/publish" },
  { name: "pushes", method: "GET", path: "/broadcasts/:broadcast/pushes" },
  { name: "timeline", method: "GET", path: "/broadcasts/:broadcast/timeline" },
  changing("pause", "paused"),
  changing("resume", "running"),
  changing("cancel", "cancelled"),
  { name: "channels", method: "GET", path: "/channels" },
  { name: "member-put", method: "PUT", path: "/channels/:channel/members/:user" },
  { name: "member-delete", method: "DELETE", path: "/channels/:channel/members/:user" },
  { name: "members", method: "GET", path: "/channels/:channel/members" },
  { name: "logout", method: "DELETE", path: "/users/:user/subscriptions" },
  { name: "dead", method: "GET", path: "/dead" },
  { name: "redrive", method: "POST", path: "/broadcasts/:broadcast/redrive" },
  { name: "user", method: "GET", path: "/users/:user" },
  { name: "erase", method: "DELETE", path: "/users/:user" },
  { name: "restore", method: "POST", path: "/users/:user/subscriptions/:subscription/restore" }
]

const malformedHeaders = refuseInvalid([errorIn("header", null, "Malformed headers")])

/** The request with its body, before the body gives the parts of the target. */
const arrived = (
  { method, path }: NatsOperation,
  { body, headers }: MicroRequest,
  source: string
): ApiRequest => ({
  method,
  target: `/${versionPrefix}${path}`,
  ...(headers === "malformed"
    ? { headers: {}, received: {}, refusal: malformedHeaders }
    : { headers, received: headers }),
  source,
  hasBody: body.length > 0,
  body: (max) => (body.length > max ? Effect.fail(new BodyTooLarge()) : Effect.succeed(body)),
  reserveResponseBytes: () => undefined,
  batched: false,
  // Limits per address hold for each source.
  address: `nats:${source}`,
  fromTrustedProxy: false,
  port: 0,
  isRepeated: () => false
})

const readObject = readBody(Schema.Record(Schema.String, Schema.Unknown))

/** The members of a body: any JSON where they become one, else texts. */
const readMembers = (
  request: ApiRequest,
  becomesBody: boolean,
  errors: Array<ErrorDetail>
): Effect.Effect<Readonly<Record<string, unknown>>, Refused> =>
  becomesBody
    ? Effect.map(readObject(request, errors, { times: membersMax }), ({ value = {} }) => value)
    : readForm(request, errors)

/** Why a member of the body cannot be a part of the path; undefined: it can. */
const partError = (value: unknown): string | undefined => {
  if (value === "") return "Required"
  if (typeof value !== "string") return "Must be a string"
  return value.isWellFormed() ? undefined : "Must be well-formed Unicode"
}

/**
 * Puts members of the body that the path names into the path. The others are the body of a POST,
 * or of a PUT that has one, else the query string.
 */
const withTarget = Effect.fnUntraced(function* (
  request: ApiRequest,
  { body: sent, isBody = false }: NatsOperation
) {
  const errors: Array<ErrorDetail> = []
  const becomesBody = isBody || request.method === "POST"
  const rest = new Map(Object.entries(yield* readMembers(request, becomesBody, errors)))
  if (errors.length > 0) return yield* refuseInvalid(errors)
  const path = request.target.replace(/:(\w+)/g, (_, name: string) => {
    const value = rest.get(name) ?? ""
    rest.delete(name)
    const error = partError(value)
    if (error === undefined) return encodeURIComponent(value as string)
    errors.push(errorIn("body", name, error))
    return ""
  })
  if (errors.length > 0) return yield* refuseInvalid(errors)
  const body = becomesBody ? Object.fromEntries(rest) : sent
  if (body !== undefined) {
    const bytes = new TextEncoder().encode(JSON.stringify(body))
    return { ...request, target: path, hasBody: true, body: () => Effect.succeed(bytes) }
  }
  const query = new URLSearchParams()
  for (const [name, value] of rest) query.set(name, String(value))
  return { ...request, target: query.size > 0 ? `${path}?${query}` : path, hasBody: false }
})

/** As `withTarget`. What is refused is handled, too: it counts towards limits, and is logged. */
const targeted = (request: ApiRequest, operation: NatsOperation): Effect.Effect<ApiRequest> =>
  withTarget(request, operation).pipe(
    Effect.catchTag("Refused", (refusal) => Effect.succeed({ ...request, refusal }))
  )

/** The headers of a response that mean something without HTTP. */
const carried = ["Alert", "Backoff", "ETag", "Last-Modified", "Retry-After", "Total-Records"]

const responseOf = (response: ApiResponse): MicroResponse => {
  const { body, broadcast, headers, jsonText, status, text } = response
  const kept = Object.entries(headers).filter(([name]) => carried.includes(name))
  const token = URL.parse(headers["Next-Page"] ?? "")?.searchParams.get("_token")
  return {
    headers: {
      ...Object.fromEntries(kept),
      ...(broadcast === undefined ? {} : { "Bellcast-Broadcast": String(broadcast) }),
      ...(token && { "Next-Page": token })
    },
    body: text ?? jsonText ?? (body === undefined ? "" : JSON.stringify(body)),
    ...(status >= 400 && { error: { code: status, text: reasonPhrase(status) } })
  }
}

/** The error of a request that is too large; undefined: it is not. */
const sizeError = ({ body, headers }: MicroRequest): ApiResponse | undefined => {
  if (JSON.stringify(headers).length > maxHeaderSize) return errorResponse("headers-too-large")
  return body.length > bodyBytesMax ? errorResponse("body-too-large") : undefined
}

/** Responds to requests within the bounds on their size, their time and their number at once. */
const makeAnswer = Effect.gen(function* () {
  const { retryAfterSeconds } = yield* Settings
  const micro = yield* Micro
  const { handleRequest } = yield* Gateway
  const running = makeShares(atOnceMax.ofSource, atOnceMax.ofAll)
  const later = { headers: { "Retry-After": String(retryAfterSeconds) } }
  const answer = (operation: NatsOperation, request: MicroRequest) => {
    const [, , source = ""] = request.subject.split(".")
    const error = sizeError(request)
    if (error !== undefined) return Effect.succeed(error)
    if (!running.take(source, 1)) return Effect.succeed(errorResponse("too-many-at-once", later))
    const whole = arrived(operation, request, source)
    // Of the largest bodies nothing is in the path.
    const isWhole = operation.name === "publish" || whole.refusal !== undefined
    const made = isWhole ? Effect.succeed(whole) : targeted(whole, operation)
    return Effect.flatMap(made, handleRequest).pipe(
      Effect.timeoutOrElse({
        duration: requestMillis,
        orElse: () => Effect.succeed(errorResponse("unavailable", later))
      }),
      Effect.ensuring(Effect.sync(() => running.give(source, 1)))
    )
  }
  return (operation: NatsOperation) => (request: MicroRequest) =>
    Effect.map(answer(operation, request), (response) => {
      const sent = responseOf(response)
      const isTooLarge = Buffer.byteLength(sent.body) > micro.bodyBytesMax()
      return isTooLarge ? responseOf(errorResponse("too-large-for-nats")) : sent
    })
})

/** Answers requests until the scope closes. */
export const serveNats = Effect.gen(function* () {
  const answer = yield* makeAnswer
  yield* (yield* Micro).serve({
    name: "bellcast",
    version: projectVersion,
    description: "Broadcasts, members of channels and users, for internal services",
    endpoints: operations.map((operation) => ({
      name: operation.name,
      subject: subjects.api("*", operation.name),
      handle: answer(operation)
    }))
  })
})
