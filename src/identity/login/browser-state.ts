// The cookie of a browser between the beginning and the end of a login. The provider
// returns a number that only this cookie has, so nobody can end a login of his own in somebody
// else's browser. Beginning a login stores nothing on the server, so it cannot fill the storage.

import { randomBytes } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { isSameSecret } from "#basics/hmac.ts"
import { Settings } from "#config"
import { Buckets } from "#nats/kv/bucket.ts"
import { settingsFault } from "#settings/every-setting.ts"
import { keys } from "#streams/buckets.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { hmacFor, useridSecret } from "../principals.ts"
import { isLoopback } from "../provider/client.ts"
import { IdentityUnavailable } from "../verdict.ts"
import {
  codeOfProvider,
  type LoginErrorCode,
  LoginFailed,
  type LoginPages,
  LoginRefused,
  loginErrorCode,
  withError
} from "./pages.ts"

/** A mail may take minutes. Brokers of Portier keep a login as long. */
const lifeSeconds = 900
/** A browser that returns too late, but within this time, still learns where to go on. */
const cookieSeconds = 3_600
const nonceBytes = 16

export interface BrowserState {
  readonly nonce: string
  /** The page to return to; it was allowed when the login began. */
  readonly redirect: string
  /** Milliseconds since the epoch. */
  readonly until: number
}

const cookieOf = (cookies: string | undefined, name: string): string | undefined =>
  cookies
    ?.split(";")
    .map((pair) => pair.trim())
    .find((pair) => pair.startsWith(`${name}=`))
    ?.slice(name.length + 1)

/** The cookie that holds a state, sealed. */
const cookieWith = (hmac: ReturnType<typeof hmacFor>, policy: string, sameSite: "None" | "Lax") => {
  // Only this server can set a cookie with this prefix (RFC 6265bis section 4.1.3.2), and only by
  // https. Firefox and Chromium take it by http from 127.0.0.1 and localhost, too, which they
  // trust like https; Safari does not.
  const name = `__Host-bellcast-${policy}`
  const attributes = `Path=/; Secure; HttpOnly; SameSite=${sameSite}`
  const sealOf = (text: string) => hmac(`cookie ${text}`, "base64url")
  return {
    set: (state: BrowserState): string => {
      const text = Buffer.from(JSON.stringify(state)).toString("base64url")
      return `${name}=${text}.${sealOf(text)}; Max-Age=${cookieSeconds}; ${attributes}`
    },
    cleared: `${name}=; Max-Age=0; ${attributes}`,
    /** The state in a Cookie header, even if its time is over. */
    find: (cookies: string | undefined): BrowserState | undefined => {
      const [text = "", seal = ""] = (cookieOf(cookies, name) ?? "").split(".")
      if (text === "" || !isSameSecret(seal, sealOf(text))) return undefined
      return JSON.parse(Buffer.from(text, "base64url").toString("utf8"))
    }
  }
}

const makeFailures = (policy: string) => {
  const warn = makeRateLimitedLog(`a login of the policy ${policy} failed`)
  return {
    /** Fails a login of the policy, and logs what is wrong. */
    failed: Effect.fnUntraced(function* (
      wrong: string,
      code: LoginErrorCode,
      fields: Readonly<Record<string, unknown>> = {}
    ) {
      yield* warn({ wrong, ...fields })
      return yield* new LoginFailed({ code })
    }),
    /** The same for the provider's own code (RFC 6749 section 4.1.2.1), never its text. */
    refused: Effect.fnUntraced(function* (error: string) {
      const shown = /^[a-z_]{1,64}$/.test(error) ? `: ${error}` : ""
      const description = `The login was refused by its provider${shown}`
      yield* warn({ wrong: description })
      return yield* new LoginRefused({ code: codeOfProvider(error), description })
    })
  }
}

/** Fails if browsers do not reach this server by https, or on this machine. */
const checkAddress = Effect.fnUntraced(function* (policy: string) {
  const { httpHost, httpScheme } = yield* Settings
  const names = "BELLCAST_HTTP_SCHEME, BELLCAST_HTTP_HOST"
  if (Option.isNone(httpScheme) || Option.isNone(httpHost))
    return yield* settingsFault([
      `${names}: the logins of ${policy} return to this server, so they must name its address`
    ])
  const url = new URL(`${httpScheme.value}://${httpHost.value}`)
  if (url.protocol === "http:" && !isLoopback(url))
    return yield* settingsFault([
      `${names}: the logins of ${policy} need https; http only for 127.0.0.1 and localhost`
    ])
})

/**
 * The states of a policy's logins. `sameSite`: `None` if the provider returns with a form, which
 * browsers send as a POST of another site; `Lax` if it returns with a link.
 */
export const makeBrowserStates = Effect.fnUntraced(function* (
  policy: string,
  sameSite: "None" | "Lax"
) {
  const secret = hmacFor(yield* useridSecret, `bellcast login ${policy}`)
  const buckets = yield* Buckets
  yield* checkAddress(policy)
  const { cleared, find, set } = cookieWith(secret, policy, sameSite)
  const failures = makeFailures(policy)

  /** Starts a login. `nonce` is for the provider, `setCookie` for the browser. */
  const begin = (redirect: string) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      const nonce = randomBytes(nonceBytes).toString("hex")
      const state: BrowserState = { nonce, redirect, until: now + lifeSeconds * 1000 }
      return { nonce, setCookie: set(state) }
    })

  /** See `LoginPages`. Counts even if the time of the login is over. */
  const returnOf: LoginPages["returnOf"] = (cookies, error) => {
    const state = find(cookies)
    return state && withError(state.redirect, loginErrorCode(error))
  }

  /** The state in a Cookie header. Fails without one, or when its time is over. */
  const read = Effect.fnUntraced(function* (cookies: string | undefined) {
    const state = find(cookies)
    if (state === undefined) return yield* failures.failed("cookie", "other_browser")
    const isOver = (yield* Clock.currentTimeMillis) >= state.until
    return isOver ? yield* failures.failed("time", "expired") : state
  })

  /** Ends a login. Fails when any gateway has seen its end before. */
  const spend = ({ nonce }: BrowserState) =>
    buckets
      .put("cache", keys.usedLogin(secret(`used ${nonce}`, "base64url")), { v: 1 }, 0, {
        ttlSeconds: lifeSeconds + 60
      })
      .pipe(
        Effect.catchTags({
          AppendConflict: () => failures.failed("used before", "invalid_request"),
          NatsUnavailable: (cause) => Effect.fail(new IdentityUnavailable({ policy, cause }))
        }),
        Effect.asVoid
      )

  /** Derives a secret of the login that never leaves the server. */
  const secretOf = ({ nonce }: Pick<BrowserState, "nonce">) =>
    secret(`secret ${nonce}`, "base64url")

  return { begin, read, spend, returnOf, cleared, secretOf, ...failures }
})
