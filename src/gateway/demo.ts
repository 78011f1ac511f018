// The demo, a page that shows the browser's half at work: `make run` alone serves it.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { demoFiles } from "#browser/serving/files.ts"
import { type ApiResponse, ok } from "./http/response.ts"
import { type Endpoint, endpoint, operation } from "./operation.ts"
import { fileGet } from "./service/files.ts"

const mediaTypes: Readonly<Record<string, string>> = {
  css: "text/css",
  html: "text/html",
  js: "text/javascript",
  svg: "image/svg+xml"
}

const policyOf = (directives: ReadonlyArray<string>) => ({
  "Content-Security-Policy": [
    "default-src 'none'",
    "script-src 'self'",
    "connect-src 'self'",
    "img-src 'self'",
    ...directives,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'"
  ].join("; ")
})

const pagePolicy = policyOf([
  "style-src 'self'",
  "worker-src 'self'",
  "require-trusted-types-for 'script'",
  "trusted-types demo"
])
/** A worker obeys the policy of its own response. It imports the shipped one. */
const workerPolicy = policyOf([])

/** A worker below `/demo/` has no scope but the demo's. */
const fileEndpoint = (name: string, path = name): Endpoint<never> =>
  endpoint(`demo-${path}`, `/demo/${path}`, {
    GET: fileGet({
      name: `demo/${name}`,
      mediaType: mediaTypes[name.split(".")[1]!]!,
      summary: "A file of the demo",
      headers: name === "worker.js" ? workerPolicy : pagePolicy
    })
  })

/**
 * Relative addresses of the page need a slash. Not to `/demo/`: where the demo was missing before,
 * a browser has cached a redirect from there to here.
 */
const slashGet = operation({
  access: "anyone",
  run: (_, { rootUrl }) =>
    Effect.succeed(ok(undefined, { Location: `${rootUrl}/demo/index.html` }, 307)),
  doc: { summary: "The demo", responses: { 307: null } }
})

/**
 * The push service of browsers that the demo makes up keeps nothing: its answers stand in the
 * endpoint. The path says the response: `410`, or 429 until a time (ms since the epoch), then 201.
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

const pushEndpoint = endpoint("demo-push", "/demo/push/:answer/:browser", { POST: pushPost })

export const demoEndpoints: ReadonlyArray<Endpoint<never>> = [
  endpoint("demo", "/demo", { GET: slashGet }),
  fileEndpoint("index.html", ""),
  ...demoFiles.map((name) => fileEndpoint(name)),
  pushEndpoint
]
