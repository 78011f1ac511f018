// VAPID (RFC 8292): signs requests, so that push services know this service. A subscription takes
// only pushes signed with the key it was made with (section 4.2), so there is a set of keys. Pushes
// to one origin with one key share a token: section 5 asks for that, and Apple refuses a second one
// within an hour.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Redacted from "effect/Redacted"
import webpush from "web-push"
import { type Moment, moment } from "#clock/clocks.ts"
import { Origins } from "../push-service/origins.ts"

export interface SigningKey {
  /** The application server key browsers subscribe with: 65 bytes, base64url. */
  readonly publicKey: string
  /** Undefined: the key is retired and signs nothing. */
  readonly privateKey: Redacted.Redacted<string> | undefined
}

/** Section 2 allows 24 h. Half of it, because clocks in the field differ by hours. */
const lifeMillis = 12 * 60 * 60_000
const renewMillis = 6 * 60 * 60_000
/** Apple allows one new token an hour. So a refused token younger than this is not replaced. */
const youngMillis = 60 * 60_000

/** A clock that was set by more than this since a token was signed makes its end too wrong. */
const setMillisMax = 60 * 60_000

export class VapidKeys extends Context.Service<
  VapidKeys,
  {
    /** Oldest first. */
    readonly keys: ReadonlyArray<SigningKey>
    /** mailto: or https: */
    readonly subject: string
  }
>()("bellcast/delivery/VapidKeys") {}

export class Vapid extends Context.Service<
  Vapid,
  {
    /**
     * The public key a subscription was made with. Without one stored, the oldest: a command that
     * another NATS client writes may name none.
     */
    readonly keyOf: (subscription: { readonly vapidKey?: string }) => string
    /** Why a key cannot sign: retired, or not in this process's set. Undefined: it can. */
    readonly fault: (publicKey: string) => "retired" | "unknown" | undefined
    /**
     * The keys to try for a subscription that was not made with this one: older ones first, newest
     * of them first.
     */
    readonly othersThan: (publicKey: string) => ReadonlyArray<string>
    /**
     * The Authorization header for an origin: a credential, never log it. Dies when the key has a
     * {@link fault}.
     */
    readonly authorization: (origin: string, publicKey: string) => Effect.Effect<string>
    /**
     * Returns a header to use in place of `refused`: signed anew, unless that has been done since.
     * Undefined when the refused token is the current one and less than an hour old.
     */
    readonly renewed: (
      origin: string,
      publicKey: string,
      refused: string
    ) => Effect.Effect<string | undefined>
  }
>()("bellcast/delivery/Vapid") {
  static readonly layer = Layer.effect(
    Vapid,
    Effect.suspend(() => makeVapid)
  )
}

interface Token {
  readonly header: string
  readonly made: Moment
  readonly renewMillis: number
}

const makeVapid = Effect.gen(function* () {
  const { keys, subject } = yield* VapidKeys
  const privateKeys = new Map(keys.map(({ privateKey, publicKey }) => [publicKey, privateKey]))
  const signing = [...privateKeys].flatMap(([each, secret]) => (secret === undefined ? [] : [each]))
  /** By origin and public key. */
  const tokens = (yield* Origins).table(() => new Map<string, Token>())

  const signed = Effect.fnUntraced(function* (origin: string, publicKey: string, made: Moment) {
    const header = webpush.getVapidHeaders(
      origin,
      subject,
      publicKey,
      Redacted.value(privateKeys.get(publicKey)!),
      "aes128gcm",
      Math.floor((made.at + lifeMillis) / 1000)
    ).Authorization
    // Spread, so that many workers do not all renew in the same minute.
    const spread = 0.9 + (yield* Random.next) / 10
    const token = { header, made, renewMillis: renewMillis * spread }
    tokens.of(origin).set(publicKey, token)
    return header
  })

  const authorization = Effect.fnUntraced(function* (origin: string, publicKey: string) {
    const now = yield* moment
    const token = tokens.of(origin).get(publicKey)
    return token !== undefined && (ageOf(token, now) ?? renewMillis) < token.renewMillis
      ? token.header
      : yield* signed(origin, publicKey, now)
  })

  const renewed = Effect.fnUntraced(function* (origin: string, publicKey: string, refused: string) {
    const now = yield* moment
    const token = tokens.of(origin).get(publicKey)
    if (token === undefined || token.header !== refused)
      return yield* authorization(origin, publicKey)
    const isYoung = (ageOf(token, now) ?? youngMillis) < youngMillis
    return isYoung ? undefined : yield* signed(origin, publicKey, now)
  })

  return {
    authorization,
    renewed,
    keyOf: ({ vapidKey }: { readonly vapidKey?: string }) => vapidKey ?? keys[0]!.publicKey,
    fault: (publicKey: string) => {
      if (!privateKeys.has(publicKey)) return "unknown"
      return privateKeys.get(publicKey) === undefined ? "retired" : undefined
    },
    othersThan: (publicKey: string) => {
      const i = signing.indexOf(publicKey)
      return [...signing.slice(0, i).reverse(), ...signing.slice(i + 1)]
    }
  }
})

/** The age of a token; undefined: the clock was set since, so it may have ended, or not begun. */
const ageOf = ({ made }: Token, now: Moment): number | undefined => {
  const age = now.monotonic - made.monotonic
  return Math.abs(now.at - made.at - age) > setMillisMax ? undefined : age
}
