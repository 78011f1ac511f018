// One log line per request (contract 6.1). Query strings may name endpoints and keys, so only values that cannot are shown.
import { Clock, Effect } from "effect"
import type { Answer, Ask } from "./ask.ts"

const harmless = /^(_limit|_since|_before|_to|_sort|_fields|last_modified)=/

const redact = (query: string): string =>
  query
    .split("&")
    .map((pair) => (harmless.test(pair) || !pair.includes("=") ? pair : `${pair.slice(0, pair.indexOf("="))}=…`))
    .join("&")

export const summarize = Effect.fnUntraced(function* (ask: Ask, answer: Answer, began: number) {
  const now = yield* Clock.currentTimeMillis
  const [path = "", ...query] = ask.target.split("?")
  const { headers } = ask
  yield* Effect.logInfo(ask.batched ? "subrequest.summary" : "request.summary", {
    method: ask.method,
    path: path.slice(0, 1024),
    querystring: redact(query.join("?")).slice(0, 1024),
    agent: headers["user-agent"],
    lang: headers["accept-language"],
    rid: headers["x-request-id"],
    errno: answer.errno,
    code: answer.status,
    t: now - began
  })
})
