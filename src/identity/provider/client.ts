// Requests to identity providers: https only, no redirects, no private addresses but those of hosts
// that the operator named, a bound on time and bytes, and one retry.
import { isIP, type LookupFunction } from "node:net"
import { Effect } from "effect"
import { Agent, request } from "undici"
import { anyLookup, checkedLookup } from "#basics/address-filter.ts"
import { type Resolve, sharedLookup } from "#basics/shared-lookup.ts"
import { IdentityUnavailable } from "../errors.ts"

const timeoutMillis = 3_000
/** Key sets and token responses have a few kilobytes. */
const bytesMax = 256 * 1024
const connectionsMax = 16

export interface ProviderRequest {
  readonly method: "GET" | "POST"
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** An effect is run for each attempt. */
  readonly body?: string | Effect.Effect<string, IdentityUnavailable>
  /** Not to be sent a second time, as a code is that only counts once. */
  readonly isSingle?: true
}

export interface ProviderResponse {
  readonly status: number
  /** The body, if it is JSON. */
  readonly json: unknown
  readonly retryAfter: string | undefined
}

export type Send = (
  request: ProviderRequest
) => Effect.Effect<ProviderResponse, IdentityUnavailable>

/** The JSON of a text; undefined for any other text. */
const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

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

/** Sends one request, without a retry. */
const sendOnce = async (
  { headers, method, url }: ProviderRequest,
  body: string | undefined,
  dispatcher: Agent,
  signal: AbortSignal
): Promise<ProviderResponse> => {
  const response = await request(url, {
    method,
    dispatcher,
    signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMillis)]),
    headers: { accept: "application/json", ...headers },
    ...(body === undefined ? {} : { body })
  })
  const retryAfter = response.headers["retry-after"]
  return {
    status: response.statusCode,
    json: jsonOf(await textOf(response.body)),
    retryAfter: typeof retryAfter === "string" ? retryAfter : undefined
  }
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
  resolve: Resolve = sharedLookup
) {
  const agentWith = (lookup: unknown) =>
    new Agent({
      connections: connectionsMax,
      connect: { timeout: timeoutMillis, lookup: lookup as LookupFunction }
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
    const { body } = wanted
    const attempt = Effect.flatMap(Effect.isEffect(body) ? body : Effect.succeed(body), (text) =>
      Effect.tryPromise({
        try: (signal) => sendOnce(wanted, text, isNamed ? named : others, signal),
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
