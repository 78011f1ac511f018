// The push service of browsers that the demo makes up. It keeps nothing: its answers stand in the
// endpoint.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { ApiResponse } from "../http/request.ts"
import { endpoint, operation } from "../operation.ts"

const respond = (status: number, headers: Readonly<Record<string, string>> = {}): ApiResponse => ({
  status,
  headers
})

/** The path says the response: `410`, or 429 until a time (ms since the epoch), then 201. */
const pushPost = operation({
  access: "anyone",
  run: Effect.fnUntraced(function* (_, { params }) {
    if (params["answer"] === "410") return respond(410)
    const seconds = Math.ceil((Number(params["answer"]) - (yield* Clock.currentTimeMillis)) / 1000)
    return seconds > 0 ? respond(429, { "Retry-After": String(seconds) }) : respond(201)
  }),
  doc: { summary: "Take a push to a made-up browser", responses: { 201: null } }
})

export const pushEndpoint = endpoint("demo-push", "/demo/push/:answer/:browser", { POST: pushPost })
