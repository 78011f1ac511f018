// POST /batch: several requests in one, answered in order, each judged alone. Nothing is rolled back:
// when the storage fails in the middle, the batch answers with that failure, and what was written
// before stays. Every write may be repeated.
import { Effect, Schema } from "effect"
import { errorResponse } from "../http/errors.ts"
import {
  type ApiRequest,
  type ApiResponse,
  BodyTooLarge,
  type Call,
  jsonResponse
} from "../http/request.ts"
import type { Operation } from "../operation.ts"
import { bodyOf, type Entry, Partial, pathOf, readBatch } from "./body.ts"

/**
 * Bytes of the answers together. The largest single answer is a list: 250 KB, or 1 MB where an
 * earlier version stored larger subscriptions. 25 such lists would be 17 MB for 246 bytes.
 */
export const responseBytesMax = 4 * 1024 * 1024

const BatchResponse = Schema.Struct({
  responses: Schema.Array(
    Schema.Struct({
      path: Schema.String,
      status: Schema.Int,
      headers: Schema.Record(Schema.String, Schema.String),
      body: Schema.Unknown
    })
  )
})

/** Every header of the batch counts for its entries, unless an entry says otherwise. */
const requestOf = (
  { request }: Call,
  { headers, method }: Entry,
  target: string,
  body: unknown
): ApiRequest => {
  const { "content-length": _, "transfer-encoding": __, ...inherited } = request.headers
  const bytes = new TextEncoder().encode(body === undefined ? "" : JSON.stringify(body))
  return {
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
    reserveResponseBytes: request.reserveResponseBytes,
    batched: true,
    address: request.address
  }
}

/** One of the batch's responses as JSON text. */
const textOf = (target: string, { method }: Entry, response: ApiResponse): string => {
  const { body, headers, html, jsonText, status } = response
  const typed =
    body === undefined ? headers : { ...headers, "Content-Type": "application/json; charset=UTF-8" }
  const head = JSON.stringify({ path: pathOf(target), status, headers: typed })
  const content = method === "HEAD" ? '""' : (jsonText ?? JSON.stringify(html ?? body ?? ""))
  return `${head.slice(0, -1)},"body":${content}}`
}

/** Whether a request can be answered as if it had not been made. */
const isSafe = ({ method }: Entry): boolean => method === "GET" || method === "HEAD"

export const batchPost: Operation<ReadonlyArray<Entry>> = {
  access: "anyone",
  takesJson: "always",
  read: readBatch,
  run: Effect.fnUntraced(function* (entries, call, { handleRequest }) {
    const texts: Array<string> = []
    let bytes = 0
    // From the first answer that does not fit, no entry is made any more: a later one may rely on it.
    let isFull = false
    for (const entry of entries) {
      // Other requests are answered between the entries.
      yield* Effect.yieldNow
      let { target } = entry
      let text = textOf(target, entry, errorResponse("responseTooLarge"))
      if (!isFull) {
        const body = entry.body()
        let response = yield* handleRequest(requestOf(call, entry, target, body))
        const location = response.status === 307 ? response.headers["Location"] : undefined
        if (location !== undefined) {
          // The host may be one that the entry names.
          target = location.replace(/^[a-z]+:\/\/[^/]+/, "")
          response = yield* handleRequest(requestOf(call, entry, target, body))
        }
        if (response.aborts) return response
        const made = textOf(target, entry, response)
        const madeBytes = Buffer.byteLength(made)
        isFull =
          bytes + madeBytes > responseBytesMax || !call.request.reserveResponseBytes(madeBytes)
        // What a write did is always told.
        if (!isFull || !isSafe(entry)) text = made
      }
      bytes += Buffer.byteLength(text)
      texts.push(text)
    }
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
}
