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
import { Group, type TokenRequest, type TokenResponse } from "#children/group.ts"
import { type Moment, moment } from "#clock/clocks.ts"
import { makeSingleFlight } from "#clock/single-flight.ts"
import { Origins, type Table } from "../push-service/origins.ts"

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
  /** No other one may take its place yet. */
  isRefused: boolean
  readonly made: Moment
  readonly renewMillis: number
}

const makeVapid = Effect.gen(function* () {
  const { keys } = yield* VapidKeys
  const { fault, keyOf, othersThan } = makeSet(keys)
  /** By origin and public key. */
  const tokens = (yield* Origins).table(() => new Map<string, Token>())
  const make = yield* makeTokens(tokens)

  const authorization = Effect.fnUntraced(function* (origin: string, publicKey: string) {
    const now = yield* moment
    const token = tokens.of(origin).get(publicKey)
    return token !== undefined && (ageOf(token, now) ?? renewMillis) < token.renewMillis
      ? token.header
      : yield* make.first({ origin, publicKey }, now)
  })

  const renewed = Effect.fnUntraced(function* (origin: string, publicKey: string, refused: string) {
    const now = yield* moment
    const token = tokens.of(origin).get(publicKey)
    const isCurrent = token?.header === refused
    if (token === undefined || (!isCurrent && !token.isRefused))
      return yield* authorization(origin, publicKey)
    return yield* make.other({ origin, publicKey, refused }, token, now)
  })

  const { answerTokens } = yield* Group
  answerTokens(
    Effect.fnUntraced(function* ({ origin, publicKey, refused }) {
      if (fault(publicKey) !== undefined) return "none"
      const header = yield* refused === undefined
        ? authorization(origin, publicKey)
        : renewed(origin, publicKey, refused)
      const token = tokens.of(origin).get(publicKey)
      if (header === undefined || token === undefined) return "none"
      const age = ageOf(token, yield* moment) ?? token.renewMillis
      return { header, freshMillis: Math.max(0, token.renewMillis - age) }
    })
  )

  return { authorization, renewed, keyOf, fault, othersThan }
})

/** The answer of the set of keys about one. */
const makeSet = (keys: ReadonlyArray<SigningKey>) => {
  const privateKeys = new Map(keys.map(({ privateKey, publicKey }) => [publicKey, privateKey]))
  const signing = [...privateKeys].flatMap(([each, secret]) => (secret === undefined ? [] : [each]))
  return {
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
}

/**
 * Makes tokens: signs them, or gets them from the parent of this process, so that processes that
 * begin and end do not sign a new one each time. A parent that does not respond is not waited for.
 */
const makeTokens = Effect.fnUntraced(function* (tokens: Table<Map<string, Token>>) {
  const { keys, subject } = yield* VapidKeys
  const { askToken } = yield* Group
  const asked = yield* makeSingleFlight<string, TokenResponse | undefined>()

  const signed = Effect.fnUntraced(function* ({ origin, publicKey }: TokenRequest, made: Moment) {
    const header = webpush.getVapidHeaders(
      origin,
      subject,
      publicKey,
      Redacted.value(keys.findLast((each) => each.publicKey === publicKey)!.privateKey!),
      "aes128gcm",
      Math.floor((made.at + lifeMillis) / 1000)
    ).Authorization
    // Spread, so that many workers do not all renew in the same minute.
    const spread = 0.9 + (yield* Random.next) / 10
    tokens
      .of(origin)
      .set(publicKey, { header, isRefused: false, made, renewMillis: renewMillis * spread })
    return header
  })

  const given = Effect.fnUntraced(function* (request: TokenRequest, now: Moment) {
    const { origin, publicKey, refused = "" } = request
    const ask = askToken?.(request) ?? Effect.undefined
    const token = yield* asked.join(`${origin} ${publicKey} ${refused}`, ask)
    if (token === undefined || token === "none") return token
    const { freshMillis, header } = token
    tokens
      .of(origin)
      .set(publicKey, { header, isRefused: false, made: now, renewMillis: freshMillis })
    return header
  })

  return {
    /** The header of a token. */
    first: Effect.fnUntraced(function* (request: TokenRequest, now: Moment) {
      const header = askToken === undefined ? undefined : yield* given(request, now)
      return header === undefined || header === "none" ? yield* signed(request, now) : header
    }),
    /** The header of another token than the refused one; undefined: none may be made now. */
    other: Effect.fnUntraced(function* (request: TokenRequest, token: Token, now: Moment) {
      // Only the parent knows when the token of a child was signed.
      const header = askToken === undefined ? undefined : yield* given(request, now)
      const isYoung = (ageOf(token, now) ?? youngMillis) < youngMillis
      const isNone = header === "none" || (header === undefined && isYoung)
      // Pushes under way with a former token are not tried again with this one.
      token.isRefused = isNone
      return isNone ? undefined : (header ?? (yield* signed(request, now)))
    })
  }
})

/** The age of a token; undefined: the clock was set since, so it may have ended, or not begun. */
const ageOf = ({ made }: Token, now: Moment): number | undefined => {
  const age = now.monotonic - made.monotonic
  return Math.abs(now.at - made.at - age) > setMillisMax ? undefined : age
}
