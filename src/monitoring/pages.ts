// The pages of the metrics port: metrics, and the two heartbeats of the API without its prefix.
import * as Effect from "effect/Effect"
import type { Processes } from "#nats/connection/processes.ts"
import type { Backlog } from "#nats/watch/backlog.ts"
import type { Space } from "#nats/watch/space.ts"
import { Health } from "./health.ts"
import { metricsText, textFormat } from "./metrics-text.ts"

export interface Page {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

/** The services that the pages read. */
export type Shown = Backlog | Health | Processes | Space

export interface PageOptions {
  readonly retryAfterSeconds: number
}

type Show = (options: PageOptions) => Effect.Effect<Page, never, Shown>

const json = { "Content-Type": "application/json; charset=UTF-8" }
const plain = { "Content-Type": "text/plain; charset=utf-8" }

/** The page of a heartbeat: 200, or 503 when a check fails. */
const heartbeatPage = (
  isWell: boolean,
  view: object,
  { retryAfterSeconds }: PageOptions
): Page => ({
  status: isWell ? 200 : 503,
  headers: isWell ? json : { ...json, "Retry-After": String(retryAfterSeconds) },
  text: JSON.stringify(view)
})

const pages: Readonly<Record<string, Show>> = {
  "/metrics": () =>
    Effect.map(metricsText("operator"), (text) => ({
      status: 200,
      headers: { "Content-Type": textFormat },
      text
    })),
  "/__heartbeat__": Effect.fnUntraced(function* (options) {
    const view = yield* (yield* Health).view
    return heartbeatPage(Object.values(view).every(Boolean), view, options)
  }),
  "/__lbheartbeat__": Effect.fnUntraced(function* (options) {
    return heartbeatPage(!(yield* Health).isLeaving(), {}, options)
  })
}

const paths = Object.keys(pages).join(", ")
const methods = ["GET", "HEAD"]

const unknownPath: Page = { status: 404, headers: plain, text: `Here are ${paths}.\n` }
const wrongMethod: Page = {
  status: 405,
  headers: { ...plain, Allow: methods.join(", ") },
  text: `Use ${methods.join(" or ")}.\n`
}

/** The page of a request. `target` may have a query string, which changes nothing. */
export const pageOf = (
  method: string,
  target: string,
  options: PageOptions
): Effect.Effect<Page, never, Shown> => {
  const [path = ""] = target.split("?", 1)
  const show = Object.hasOwn(pages, path) ? pages[path] : undefined
  if (show === undefined) return Effect.succeed(unknownPath)
  return methods.includes(method) ? show(options) : Effect.succeed(wrongMethod)
}
