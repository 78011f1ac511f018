// Limits the credentials of an address by which no policy finds a user, whatever their kind. What
// was good lately still passes, as many users may share an address.
import { Context, Effect, Layer } from "effect"
import { type ExpiringMap, makeExpiringMap } from "#basics/expiring-map.ts"
import { makeRate, type Rate } from "#basics/rate.ts"
import { monotonicMillis } from "#clock/monotonic.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { TooManyFailures } from "../errors.ts"
import { IdentitySettings } from "../settings.ts"

/** How long credentials that were good pass the limit on failures of their address. */
const goodMillis = 10 * 60_000
/** About 150 bytes each. */
const goodMax = 20_000
const addressesMax = 20_000

interface State {
  readonly max: number
  readonly failures: Rate
  readonly good: ExpiringMap<true>
  readonly warn: (fields: Readonly<Record<string, unknown>>) => Effect.Effect<void>
}

const tooMany = ({ max, warn }: State, waitMillis: number) =>
  Effect.as(warn({ max }), new TooManyFailures({ waitMillis }))

/** Fails for an address that has sent too many, unless the credentials of this key were good. */
const admit = Effect.fnUntraced(function* (state: State, key: string, address: string) {
  if (state.max === 0) return
  const now = yield* monotonicMillis
  const waitMillis = state.failures.wait(address, now)
  if (waitMillis === 0 || state.good.get(key, now) !== undefined) return
  return yield* yield* tooMany(state, waitMillis)
})

/** Counts one. Succeeds with the error if there were too many before. */
const count = Effect.fnUntraced(function* (state: State, address: string) {
  const waitMillis = state.failures.take(address, yield* monotonicMillis)
  return state.max === 0 || waitMillis === 0 ? undefined : yield* tooMany(state, waitMillis)
})

export class Failures extends Context.Service<
  Failures,
  {
    readonly admit: (key: string, address: string) => Effect.Effect<void, TooManyFailures>
    readonly count: (address: string) => Effect.Effect<TooManyFailures | undefined>
    /** Remembers the key of credentials that are good. */
    readonly good: (key: string) => Effect.Effect<void>
  }
>()("bellcast/identity/Failures") {
  static readonly layer = Layer.effect(
    Failures,
    Effect.gen(function* () {
      const { authFailuresPerAddressPerMinuteMax: max } = yield* IdentitySettings
      const state: State = {
        max,
        failures: makeRate(Math.max(max, 1), 60_000, addressesMax),
        good: makeExpiringMap(goodMax),
        warn: makeRateLimitedLog(
          "an address sends too many wrong credentials " +
            "(BELLCAST_AUTH_FAILURES_PER_ADDRESS_PER_MINUTE_MAX; " +
            "behind a proxy BELLCAST_TRUSTED_PROXIES must name it)"
        )
      }
      return Failures.of({
        admit: (key, address) => admit(state, key, address),
        count: (address) => count(state, address),
        good: (key) =>
          Effect.map(monotonicMillis, (now) => state.good.set(key, true, now + goodMillis))
      })
    })
  )
}
