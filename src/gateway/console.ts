// The console: pages on which people write, send, watch and stop broadcasts. Its files are served
// on one host only: a site that passes `/v1/` on under its own origin would otherwise have them
// there, too, where every hole of the site would be a publisher.
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { consoleFiles, consoleTrialFiles } from "#browser/serving/files.ts"
import type { SettingsShape } from "#config"
import type { ApiRequest } from "./http/request.ts"
import { ok } from "./http/response.ts"
import { originOf, withoutDefaultPort } from "./http/response-headers.ts"
import { decodePercent, type Route } from "./http/routing.ts"
import { versionPrefix } from "./http/version.ts"
import { configGet, sessionDelete, sessionPost } from "./logins/console-login.ts"
import { type Endpoint, endpoint, type NeedsOf, operation } from "./operation.ts"
import { fileGet } from "./service/files.ts"
import type { GatewaySettings } from "./settings.ts"

/**
 * The origin of the console, if the request arrives there: by the Host of the connection, as
 * BELLCAST_HTTP_HOST names one host for requests to all. In development without the setting every
 * address of the service is one.
 */
export const consoleOriginOf = (
  { consoleOrigin }: Pick<GatewaySettings["Service"], "consoleOrigin">,
  common: Pick<SettingsShape, "httpScheme" | "httpHost" | "host">,
  request: ApiRequest,
  isDevelopment: boolean
): string | undefined => {
  if (Option.isNone(consoleOrigin)) return isDevelopment ? originOf(common, request) : undefined
  const { host, protocol } = new URL(consoleOrigin.value)
  const scheme = protocol === "https:" ? "https" : "http"
  const arrived = request.received["host"]?.toLowerCase() ?? ""
  return withoutDefaultPort(scheme, arrived) === host ? consoleOrigin.value : undefined
}

/**
 * The route where the console is not served. Without this, `/v1/console/` would be a redirect to
 * the path without its slash, which browsers keep for an hour after the console is turned on.
 */
export const withoutConsole = <E extends Endpoint>(route: Route<E>): Route<E> =>
  route.kind === "redirect" && route.why === "slash" && leadsToConsole(route.to)
    ? { kind: "unknown", version: false }
    : route

/**
 * Whether a path is that of the console once a browser, or a proxy, has resolved and decoded it.
 */
const leadsToConsole = (to: string): boolean => {
  const [path = ""] = to.split("?")
  const resolved: Array<string> = []
  for (const segment of (decodePercent(path) ?? "").split("/")) {
    if (segment === "..") resolved.pop()
    else if (segment !== "" && segment !== ".") resolved.push(segment)
  }
  return resolved[0] === versionPrefix && resolved[1] === "console"
}

const mediaTypes: Readonly<Record<string, string>> = {
  css: "text/css",
  html: "text/html",
  js: "text/javascript",
  svg: "image/svg+xml"
}

/** Powerful features that the pages do not use. */
const features = ["camera", "display-capture", "geolocation", "microphone", "payment", "usb"]

/** Sent with every file, so that none can be framed, loaded or run by a page of another origin. */
const isolated = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Referrer-Policy": "no-referrer",
  "Permissions-Policy": features.map((feature) => `${feature}=()`).join(", ")
}

/** In development the pages show a push in this browser, which needs a worker. */
const pagePolicy = (isDevelopment: boolean): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    // A preview shows the image of a notification, which may be anywhere.
    "img-src 'self' https: data:",
    ...(isDevelopment ? ["worker-src 'self'"] : []),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    // The registration of a worker needs a policy; nothing else makes a script or markup of text.
    isDevelopment ? "trusted-types console" : "trusted-types 'none'"
  ].join("; ")

/** A worker obeys the policy of its own response. It imports the shipped one. */
const workerPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "connect-src 'self'",
  "img-src 'self' https: data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'"
].join("; ")

/** A worker below `/console/` has no scope but the console's. */
const fileEndpoint = (name: string, isDevelopment: boolean, path = name): Endpoint<never> =>
  endpoint(`console-${path}`, `/console/${path}`, {
    GET: fileGet({
      name: `console/${name}`,
      mediaType: mediaTypes[name.split(".").at(-1)!]!,
      summary: "A file of the console",
      headers: {
        ...isolated,
        "Content-Security-Policy": name === "worker.js" ? workerPolicy : pagePolicy(isDevelopment)
      }
    })
  })

/** Relative addresses of the page need a slash. */
const slashGet = operation({
  access: "anyone",
  run: (_, { rootUrl }) => Effect.succeed(ok(undefined, { Location: `${rootUrl}/console/` }, 307)),
  doc: { summary: "The console", responses: { 307: null } }
})

const login = [
  endpoint("console-config", "/console/config.json", { GET: configGet }),
  endpoint("console-session", "/console/session", { POST: sessionPost, DELETE: sessionDelete })
]

type Needs = NeedsOf<(typeof login)[number]>

export const consoleEndpoints = (isDevelopment: boolean): ReadonlyArray<Endpoint<Needs>> =>
  [
    endpoint("console", "/console", { GET: slashGet }),
    fileEndpoint("index.html", isDevelopment, ""),
    ...[...consoleFiles, ...(isDevelopment ? consoleTrialFiles : [])].map((name) =>
      fileEndpoint(name, isDevelopment)
    ),
    ...login
  ].map((each) => ({ ...each, isForOwnPages: true }))
