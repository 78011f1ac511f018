// Limits the credentials of an address by which no policy finds a user, whatever their kind.
// Credentials that were good lately still pass, as many users may share an address.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { LruCache } from "#basics/bounded.ts"
import { makeRate } from "#basics/limits.ts"
import { monotonicMillis } from "#clock/clocks.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { IdentitySettings } from "../settings.ts"
import { TooManyFailures } from "../verdict.ts"

/** How long credentials that were good pass the limit on failures of their address. */
const goodMillis = 10 * 60_000
/** About 150 bytes each. */
const goodMax = 20_000
const addressesMax = 20_000

export class Failures extends Context.Service<
  Failures,
  {
    /** Fails for an address that has sent too many, unless this key's credentials were good. */
    readonly admit: (key: string, address: string) => Effect.Effect<void, TooManyFailures>
    /** Counts one. Succeeds with the error if there were too many before. */
    readonly count: (address: string) => Effect.Effect<TooManyFailures | undefined>
    /** Remembers the key of credentials that are good. */
    readonly good: (key: string) => Effect.Effect<void>
  }
>()("bellcast/identity/Failures") {
  static readonly layer = Layer.effect(
    Failures,
    Effect.gen(function* () {
      const { authFailuresPerAddressPerMinuteMax: max } = yield* IdentitySettings
      const failures = makeRate(max, 60_000, addressesMax)
      const known = new LruCache<true>(goodMax)
      const warn = makeRateLimitedLog(
        "an address sends too many wrong credentials " +
          "(BELLCAST_AUTH_FAILURES_PER_ADDRESS_PER_MINUTE_MAX; " +
          "behind a proxy BELLCAST_TRUSTED_PROXIES must name it)"
      )
      const tooMany = (waitMillis: number) =>
        Effect.as(warn({ max }), new TooManyFailures({ waitMillis }))
      return Failures.of({
        admit: Effect.fnUntraced(function* (key, address) {
          const now = yield* monotonicMillis
          const waitMillis = failures.wait(address, now)
          if (waitMillis === 0 || known.get(key, now) !== undefined) return
          return yield* yield* tooMany(waitMillis)
        }),
        count: Effect.fnUntraced(function* (address) {
          const waitMillis = failures.take(address, yield* monotonicMillis)
          return waitMillis === 0 ? undefined : yield* tooMany(waitMillis)
        }),
        good: (key) => Effect.map(monotonicMillis, (now) => known.set(key, true, now + goodMillis))
      })
    })
  )
}
