// Requests to identity providers: https only, no redirects, no private addresses but those of hosts
// that the operator named, a bound on time and bytes, and one retry. Also our own login there, and
// which URLs may be called.
import { createPrivateKey, randomUUID } from "node:crypto"
import { readFileSync } from "node:fs"
import { isIP } from "node:net"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { SignJWT } from "jose"
import type { Agent } from "undici"
import { anyLookup, checkedLookup, type Lookup, type Resolve } from "#basics/address-filter.ts"
import { type JsonObject, jsonObjectOf } from "#basics/json.ts"
import { connectorOver } from "#basics/outgoing.ts"
import { OutgoingProxy } from "#settings/addresses.ts"
import { type SettingsError, settingsFault } from "#settings/every-setting.ts"
import { IdentityUnavailable } from "../verdict.ts"

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
  // delivery/push/transport/exchange.ts. Few requests gain nothing by HTTP/2.
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
  return { status: response.statusCode, json: jsonObjectOf(await bodyTextOf(response.body)) }
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

/** The text of a body of at most `bytesMax` bytes. */
const bodyTextOf = async (body: AsyncIterable<Uint8Array>): Promise<string> => {
  const chunks: Array<Uint8Array> = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > bytesMax) throw new Error("the response is too large")
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString("utf8")
}

/** The error for the log: its code or name, never its text, which may hold a URL with secrets. */
const nameOf = (error: unknown): string => {
  const { cause, code, name } = error as { cause?: unknown; code?: unknown; name?: unknown }
  if (typeof code === "string") return code
  return cause === undefined ? String(name) : nameOf(cause)
}

const isWorthRetry = ({ status }: ProviderResponse) => status === 502 || status === 503

const assertionSeconds = 60
const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

/** By the curve, or by the type of a key without one. */
const assertionAlgorithms: Readonly<Record<string, string>> = {
  rsa: "RS256",
  ed25519: "EdDSA",
  prime256v1: "ES256",
  secp384r1: "ES384"
}

type Texts = Readonly<Record<string, string>>

/**
 * Our login at an authorization server: client_secret_basic (RFC 6749 section 2.3.1) or
 * private_key_jwt (RFC 7523 section 2.2).
 */
export interface ClientLogin {
  readonly headers: Texts
  /** Form fields, made anew for each attempt: servers take an assertion once (RFC 7523). */
  readonly fields: Effect.Effect<Texts, IdentityUnavailable>
}

interface LoginSettings {
  readonly clientId: Option.Option<string>
  readonly clientSecret: Option.Option<Redacted.Redacted<string>>
  readonly clientKeyFile: Option.Option<string>
}

/** The login from the settings. `audience`: the endpoint, for which assertions are signed. */
export const makeClientLogin = (
  policy: string,
  prefix: string,
  audience: string,
  { clientId, clientKeyFile, clientSecret }: LoginSettings
): Effect.Effect<ClientLogin, SettingsError> => {
  const id = Option.getOrElse(clientId, () => "")
  return Option.isSome(clientKeyFile)
    ? byKey(policy, `${prefix}_CLIENT_KEY_FILE`, id, clientKeyFile.value, audience)
    : Effect.succeed(bySecret(id, Redacted.value(Option.getOrThrow(clientSecret))))
}

export const bySecret = (id: string, secret: string): ClientLogin => {
  const pair = `${formEncoded(id)}:${formEncoded(secret)}`
  const headers = { authorization: `Basic ${Buffer.from(pair).toString("base64")}` }
  return { headers, fields: Effect.succeed({}) }
}

/** RFC 6749 appendix B: form encoding of id and secret, before they are joined. */
const formEncoded = (text: string): string => new URLSearchParams({ "": text }).toString().slice(1)

const byKey = Effect.fnUntraced(function* (
  policy: string,
  setting: string,
  id: string,
  file: string,
  audience: string
): Effect.fn.Return<ClientLogin, SettingsError> {
  const key = yield* Effect.try({
    try: () => createPrivateKey(readFileSync(file, "utf8")),
    // The text may be the key itself: never quote it.
    catch: () => settingsFault([`${setting}: Expected the path of a file with a private key (PEM)`])
  })
  const { asymmetricKeyDetails, asymmetricKeyType } = key
  const alg = assertionAlgorithms[asymmetricKeyDetails?.namedCurve ?? asymmetricKeyType ?? ""]
  if (alg === undefined)
    return yield* settingsFault([`${setting}: Expected a key for RS256, ES256, ES384 or EdDSA`])
  const fields = Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const iat = Math.floor(now / 1000)
    const times = { iat, exp: iat + assertionSeconds }
    const claims = { jti: randomUUID(), iss: id, sub: id, aud: audience, ...times }
    return Effect.tryPromise({
      try: async () => ({
        client_id: id,
        client_assertion_type: assertionType,
        client_assertion: await new SignJWT(claims).setProtectedHeader({ alg }).sign(key)
      }),
      catch: () => new IdentityUnavailable({ policy, cause: "the assertion cannot be signed" })
    })
  })
  return { headers: {}, fields }
})

const loopbackHosts = ["localhost", "127.0.0.1", "[::1]"]

export const isLoopback = (url: URL): boolean => loopbackHosts.includes(url.hostname)

/** Why a setting is no URL of a provider. `http:` is for a provider on this machine. */
export const providerUrlFault = (text: string): string | undefined => {
  // The parser drops blanks and line breaks, which the text keeps where it is compared.
  const url = /^[!-~]+$/.test(text) ? URL.parse(text) : null
  if (url === null || url.username !== "" || url.password !== "" || url.hash !== "")
    return "Expected a URL such as https://login.example.org/path, without a login or a fragment"
  if (url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url))) return undefined
  return "Expected https://; only a provider on this machine may have http://"
}

/**
 * Why a URL from a provider's document must not be called: it must be https. The provider's own
 * origin, which the operator named, may be http on this machine.
 */
export const discoveredUrlFault = (text: unknown, issuer: string): string | undefined => {
  const url = typeof text === "string" ? URL.parse(text) : null
  if (url === null || url.username !== "" || url.password !== "") return "is no URL"
  if (url.origin === new URL(issuer).origin) return undefined
  return url.protocol === "https:" ? undefined : "is not https"
}
