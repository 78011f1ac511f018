// Requests to identity providers: https only, no redirects, no private addresses but those of hosts
// that the operator named, a bound on time and bytes, and one retry.
import { isIP } from "node:net"
import * as Effect from "effect/Effect"
import type { Agent } from "undici"
import { anyLookup, checkedLookup, type Lookup, type Resolve } from "#basics/address-filter.ts"
import { type JsonObject, jsonObjectOf } from "#basics/json.ts"
import { connectorOver } from "#basics/outgoing.ts"
import { OutgoingProxy } from "#settings/addresses.ts"
import { IdentityUnavailable } from "../verdict.ts"
import type { ClientLogin } from "./client-login.ts"

const timeoutMillis = 3_000
/** Key sets and token responses have a few kilobytes. */
const bytesMax = 256 * 1024
const connectionsMax = 16

/** A GET; with `form` or `json` a POST. */
export interface ProviderRequest {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly form?: Readonly<Record<string, string>>
  readonly json?: unknown
  /** Our login, with the form. */
  readonly login?: ClientLogin
  /** Not to be sent a second time, as a code is that only counts once. */
  readonly isSingle?: true
}

export interface ProviderResponse {
  readonly status: number
  /** The body, if it is an object of JSON. */
  readonly json: JsonObject | undefined
}

export type Send = (
  request: ProviderRequest
) => Effect.Effect<ProviderResponse, IdentityUnavailable>

/** The text of a body of at most `bytesMax` bytes. */
const textOf = async (body: AsyncIterable<Uint8Array>): Promise<string> => {
  const chunks: Array<Uint8Array> = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > bytesMax) throw new Error("the response is too large")
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString("utf8")
}

/** The headers and the body of a request, made anew for each attempt. */
const contentOf = Effect.fnUntraced(function* (wanted: ProviderRequest) {
  const { form, headers, json, login } = wanted
  const typed = (type: string) => ({ "content-type": type, ...headers, ...login?.headers })
  if (json !== undefined) return { headers: typed("application/json"), body: JSON.stringify(json) }
  if (form === undefined) return { headers, body: null }
  const fields = { ...form, ...(login === undefined ? {} : yield* login.fields) }
  const body = new URLSearchParams(fields).toString()
  return { headers: typed("application/x-www-form-urlencoded"), body }
})

type Undici = typeof import("undici")

/** Sends one request, without a retry. */
const sendOnce = async (
  { request }: Undici,
  url: string,
  { body, headers }: Effect.Success<ReturnType<typeof contentOf>>,
  dispatcher: Agent,
  signal: AbortSignal
): Promise<ProviderResponse> => {
  const response = await request(url, {
    method: body === null ? "GET" : "POST",
    dispatcher,
    signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMillis)]),
    headers: { accept: "application/json", ...headers },
    body
  })
  return { status: response.statusCode, json: jsonObjectOf(await textOf(response.body)) }
}

/** The error for the log: its code or name, never its text, which may hold a URL with secrets. */
const nameOf = (error: unknown): string => {
  const { cause, code, name } = error as { cause?: unknown; code?: unknown; name?: unknown }
  if (typeof code === "string") return code
  return cause === undefined ? String(name) : nameOf(cause)
}

const isWorthRetry = ({ status }: ProviderResponse) => status === 502 || status === 503

/**
 * A function that sends requests of a policy. `namedHosts`: hosts in the settings, which may have
 * private addresses. Fails with IdentityUnavailable when there is no response.
 */
export const makeSend = Effect.fnUntraced(function* (
  policy: string,
  namedHosts: ReadonlyArray<string>,
  resolve?: Resolve
) {
  // A service without a provider does not load it: 9 MiB.
  const undici = yield* Effect.promise(() => import("undici"))
  // Node.js hangs after an HTTP/2 request that times out before its body is sent; see
  // delivery/push/transport/cancel.ts. Few requests gain nothing by HTTP/2.
  const secure = undici.buildConnector({ allowH2: false, timeout: timeoutMillis })
  const proxy = yield* OutgoingProxy
  const agentWith = (lookup: Lookup) =>
    new undici.Agent({
      connections: connectionsMax,
      allowH2: false,
      connect: connectorOver(secure, { lookup, millis: timeoutMillis, proxy }) as typeof secure
    })
  const named = agentWith(anyLookup(resolve))
  const others = agentWith(checkedLookup(false, resolve))
  yield* Effect.addFinalizer(() =>
    Effect.promise(() => Promise.all([named.destroy(), others.destroy()]))
  )
  const unavailable = (error: unknown) => new IdentityUnavailable({ policy, cause: nameOf(error) })
  const send: Send = (wanted) => {
    const { hostname } = new URL(wanted.url)
    const isNamed = namedHosts.includes(hostname)
    // A socket asks `lookup` about names only.
    if (!isNamed && isIP(hostname.replace(/^\[|\]$/g, "")) !== 0)
      return Effect.fail(unavailable({ code: "ADDRESS_NOT_ALLOWED" }))
    const attempt = Effect.flatMap(contentOf(wanted), (content) =>
      Effect.tryPromise({
        try: (signal) => sendOnce(undici, wanted.url, content, isNamed ? named : others, signal),
        catch: unavailable
      })
    )
    if (wanted.isSingle) return attempt
    return Effect.flatMap(Effect.result(attempt), (first) =>
      first._tag === "Success" && !isWorthRetry(first.success)
        ? Effect.succeed(first.success)
        : attempt
    )
  }
  return send
})

/** The host of a URL, as `makeSend` wants it. */
export const hostOf = (url: string): string => new URL(url).hostname
