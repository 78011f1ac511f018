// Logins at the console by a link of a site: the fragment of the link has a token of the policy
// `signed` that is valid for a minute and has a `jti`. The console's page exchanges it, once, for a
// session of that user, whose token goes to the same policy.
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"
import { hmacFor, useridSecret } from "../principals.ts"
import { type Claims, lateFault } from "../tokens/claims.ts"
import { IdentityUnavailable, type Known, type Verdict } from "../verdict.ts"
import { makeSessions } from "./sessions.ts"

/** The longest life of a link's token, `exp` minus `iat`: a browser follows a link at once. */
export const linkLifeSeconds = 60
/** The clock of the site's backend may be ahead. */
const skewSeconds = 60
/** Longer than a token can be valid: until then a `jti` that was used is remembered. */
const usedSeconds = 300
const jtiBytesMax = 200
const storeTimeout = "5 seconds"

/** A working day, with overtime. Using a session does not extend it. */
export const consoleSessionHours = 12
/** Sessions of the console begin so. They go to no other policy, even where theirs is off. */
export const sessionPrefix = "console_"

/** Why a link's token is not exchanged. */
export class LinkRefused extends Data.TaggedError("LinkRefused")<{
  readonly why: "invalid" | "expired" | "used"
  /** For the developer of the site; never a part of the token. */
  readonly description: string
}> {}

export interface OpenedSession {
  readonly token: string
  /** Milliseconds since the epoch. */
  readonly until: number
  readonly known: Known
}

/** The logins by a link of one policy. */
export interface Links {
  /** Whether a link's token, or the token of a session, names this policy. */
  readonly isForLink: (token: string) => boolean
  readonly isForSession: (token: string) => boolean
  /** The user of a session. */
  readonly find: (session: string) => Effect.Effect<Verdict, IdentityUnavailable>
  /** Opens a session for a link's token. */
  readonly open: (token: string) => Effect.Effect<OpenedSession, LinkRefused | IdentityUnavailable>
  /** Ends a session, in all gateways. */
  readonly close: (session: string) => Effect.Effect<void, IdentityUnavailable>
}

/** How the policy reads its tokens. */
interface Reading {
  readonly isFor: (token: string) => boolean
  /** The claims of a token whose signature is right, or what is wrong. */
  readonly claimsOf: (token: string, now: number) => Effect.Effect<Claims | string>
  readonly verdictOf: (claims: Claims, now: number) => Verdict
}

export const makeLinks = Effect.fnUntraced(function* (name: string, reading: Reading) {
  const sessions = yield* makeSessions(name, consoleSessionHours * 3_600)
  const spend = yield* makeSpend(name)
  const prefix = `${sessionPrefix}${name}_`
  const open = Effect.fnUntraced(function* (token: string) {
    const now = yield* Clock.currentTimeMillis
    const claims = yield* reading.claimsOf(token, now)
    if (typeof claims === "string") return yield* refused(claims)
    const verdict = reading.verdictOf(claims, now)
    const fault =
      verdict._tag === "Invalid" ? (verdict.description ?? verdict.error) : linkFault(claims, now)
    if (fault !== undefined || verdict._tag === "Invalid") return yield* refused(fault ?? "")
    // Before the session is stored: of two requests with one token, one gets a session.
    yield* spend(claims["jti"] as string)
    const { token: secret, until } = yield* sessions.open(verdict.user, verdict.groups)
    return { token: `${prefix}${secret}`, until, known: verdict }
  })
  const secretOf = (session: string) => session.slice(prefix.length)
  return {
    isForLink: reading.isFor,
    isForSession: (token) => token.startsWith(prefix),
    find: (session) => sessions.find(secretOf(session)),
    open,
    close: (session) => sessions.close(secretOf(session))
  } satisfies Links
})

const refused = (fault: string): LinkRefused =>
  fault === lateFault
    ? new LinkRefused({
        why: "expired",
        description: `This link is over: it works for ${linkLifeSeconds} s. Open the console anew`
      })
    : new LinkRefused({ why: "invalid", description: `The token of this link: ${fault}` })

/** Why a valid token of the policy is none of a link. */
export const linkFault = ({ exp, iat, jti }: Claims, now: number): string | undefined => {
  if (typeof jti !== "string" || jti === "" || Buffer.byteLength(jti) > jtiBytesMax)
    return `jti must be a text of 1 to ${jtiBytesMax} bytes`
  if (typeof iat !== "number" || iat > now / 1000 + skewSeconds)
    return "iat must be the time at which it was signed"
  return typeof exp === "number" && exp - iat <= linkLifeSeconds
    ? undefined
    : `it may be valid for ${linkLifeSeconds} s at most (exp minus iat)`
}

/** A function that fails when any gateway has had this `jti` before. */
const makeSpend = Effect.fnUntraced(function* (policy: string) {
  const buckets = yield* Buckets
  const hmac = hmacFor(yield* useridSecret, `bellcast link ${policy}`)
  const unavailable = (cause: unknown) => new IdentityUnavailable({ policy, cause })
  return (jti: string) =>
    buckets
      .put("cache", keys.usedLogin(hmac(jti, "base64url")), { v: 1 }, 0, {
        ttlSeconds: usedSeconds
      })
      .pipe(
        Effect.timeout(storeTimeout),
        Effect.catchTags({
          AppendConflict: () => Effect.fail(used),
          NatsUnavailable: (cause) => Effect.fail(unavailable(cause)),
          TimeoutError: (cause) => Effect.fail(unavailable(cause))
        }),
        Effect.asVoid
      )
})

const used = new LinkRefused({
  why: "used",
  description: "This link was used before: each works once. Open the console anew"
})
