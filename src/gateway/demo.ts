// A development has this beside the console: the address where its first page was, and the push
// service of browsers that this page makes up. `make run` alone serves them.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { type ApiResponse, ok } from "./http/response.ts"
import { type Endpoint, endpoint, operation } from "./operation.ts"

/** To the tab of the console in which a newcomer sees a push. */
const tryGet = operation({
  access: "anyone",
  run: (_, { rootUrl }) =>
    Effect.succeed(ok(undefined, { Location: `${rootUrl}/console/#/try` }, 307)),
  doc: { summary: "The console, where it shows a push", responses: { 307: null } }
})

/**
 * The push service of made-up browsers keeps nothing: its answers stand in the endpoint. The path
 * says the response: `410`, or 429 until a time (ms since the epoch), then 201.
 */
const pushPost = operation({
  access: "anyone",
  run: Effect.fnUntraced(function* (_, { params }) {
    if (params["answer"] === "410") return respond(410)
    const seconds = Math.ceil((Number(params["answer"]) - (yield* Clock.currentTimeMillis)) / 1000)
    return seconds > 0 ? respond(429, { "Retry-After": String(seconds) }) : respond(201)
  }),
  doc: { summary: "Take a push to a made-up browser", responses: { 201: null } }
})

const respond = (status: number, headers: Readonly<Record<string, string>> = {}): ApiResponse => ({
  status,
  headers
})

export const demoEndpoints: ReadonlyArray<Endpoint<never>> = [
  endpoint("demo", "/demo", { GET: tryGet }),
  // Browsers that had the page keep its redirect to this file.
  ...["", "index.html"].map((path) => endpoint(`demo-${path}`, `/demo/${path}`, { GET: tryGet })),
  endpoint("demo-push", "/demo/push/:answer/:browser", { POST: pushPost })
]
