// POST /batch: runs several requests in order, each on its own. There is no rollback: after an
// error of the server or the storage, that error is the response to the batch, and earlier writes
// stay. The client may repeat every write.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { errorResponse } from "../http/errors.ts"
import {
  type ApiRequest,
  type ApiResponse,
  BodyTooLarge,
  type Call,
  jsonResponse
} from "../http/request.ts"
import { Gateway, operation } from "../operation.ts"
import { bodyOf, type Entry, Partial, pathOf, readBatch } from "./body.ts"

/**
 * Bytes of all responses in a batch. The largest single response is a list: 250 KB, or 1 MB where a
 * client of NATS stored larger subscriptions. Without a limit, a batch of 246 bytes would get 25 of
 * them: 17 MB.
 */
const responseBytesMax = 4 * 1024 * 1024

const BatchResponse = Schema.Struct({
  responses: Schema.Array(
    Schema.Struct({
      path: Schema.String,
      status: Schema.Int,
      headers: Schema.Record(Schema.String, Schema.String),
      body: Schema.Unknown
    })
  )
}).annotate({ identifier: "BatchResponses" })

/** The request of an entry. The headers of the batch are defaults for those of the entry. */
const requestOf = (
  { request }: Call,
  { headers, method }: Entry,
  target: string,
  body: unknown
): ApiRequest => {
  const { "content-length": _, "transfer-encoding": __, ...inherited } = request.headers
  const bytes = new TextEncoder().encode(body === undefined ? "" : JSON.stringify(body))
  return {
    ...request,
    method,
    target,
    headers: {
      ...inherited,
      ...(body === undefined ? {} : { "content-type": "application/json; charset=utf-8" }),
      ...headers
    },
    hasBody: body !== undefined,
    body: (bytesMax) =>
      bytes.length > bytesMax ? Effect.fail(new BodyTooLarge()) : Effect.succeed(bytes),
    batched: true
  }
}

/** The JSON text of one entry in `responses`. */
const textOf = (target: string, { method }: Entry, response: ApiResponse): string => {
  const { body, headers, jsonText, status, text } = response
  const typed =
    body === undefined ? headers : { ...headers, "Content-Type": "application/json; charset=UTF-8" }
  const head = JSON.stringify({ path: pathOf(target), status, headers: typed })
  const content = method === "HEAD" ? '""' : (jsonText ?? JSON.stringify(text ?? body ?? ""))
  return `${head.slice(0, -1)},"body":${content}}`
}

/** Whether an entry only reads: then a batch may drop its response. */
const isSafe = ({ method }: Entry): boolean => method === "GET" || method === "HEAD"

/** The responses so far. */
interface Responses {
  readonly texts: Array<string>
  bytes: number
  /**
   * Set at the first response that does not fit. No later entry runs: it may depend on this one.
   */
  isFull: boolean
}

/** Runs an entry, and follows a redirect once. */
const runEntry = Effect.fnUntraced(function* (entry: Entry, call: Call) {
  const { handleRequest } = yield* Gateway
  const { target } = entry
  const body = entry.body()
  const response = yield* handleRequest(requestOf(call, entry, target, body))
  const location = response.status === 307 ? response.headers["Location"] : undefined
  if (location === undefined) return { target, response }
  // Ignore the origin of the Location: an entry may choose it by its own Host header.
  const moved = location.replace(/^[a-z]+:\/\/[^/]+/, "")
  return { target: moved, response: yield* handleRequest(requestOf(call, entry, moved, body)) }
})

const add = (responses: Responses, text: string): void => {
  responses.bytes += Buffer.byteLength(text)
  responses.texts.push(text)
}

/** Runs an entry and adds its response. Returns the response instead when the batch must stop. */
const addResponse = Effect.fnUntraced(function* (responses: Responses, entry: Entry, call: Call) {
  const tooLarge = () => textOf(entry.target, entry, errorResponse("response-too-large"))
  if (responses.isFull) return void add(responses, tooLarge())
  const { response, target } = yield* runEntry(entry, call)
  if (response.aborts) return response
  const text = textOf(target, entry, response)
  const bytes = Buffer.byteLength(text)
  responses.isFull =
    responses.bytes + bytes > responseBytesMax || !call.request.reserveResponseBytes(bytes)
  // Always include the response to a write, even beyond the limit.
  return void add(responses, responses.isFull && isSafe(entry) ? tooLarge() : text)
})

export const batchPost = operation({
  access: "anyone",
  takesJson: "always",
  read: readBatch,
  run: Effect.fnUntraced(function* (entries, call) {
    const responses: Responses = { texts: [], bytes: 0, isFull: false }
    for (const entry of entries) {
      // Let other requests run between the entries.
      yield* Effect.yieldNow
      const aborted = yield* addResponse(responses, entry, call)
      if (aborted !== undefined) return aborted
    }
    const { texts } = responses
    return { ...jsonResponse(`{"responses":[${texts.join()}]}`), batchSize: entries.length }
  }),
  doc: {
    summary: "Several requests in one",
    body: bodyOf(Partial),
    bodyExample: {
      defaults: { method: "PUT" },
      requests: [{ path: "/channels/news/registration" }, { path: "/channels/sport/registration" }]
    },
    bodyRequired: true,
    responses: { 200: BatchResponse },
    errors: [400, 413, 415]
  }
})
