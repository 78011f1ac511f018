// Limits new users per address. With a policy that verifies nobody, any name is a new user, so
// quotas per user alone limit nothing.
import { Context, Effect, Layer } from "effect"
import { makeRate } from "#basics/rate.ts"
import { monotonicMillis } from "#clock/monotonic.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { refuse } from "../http/errors.ts"
import type { Call, Refused } from "../http/request.ts"
import { GatewaySettings } from "../settings.ts"

const hourMillis = 3_600_000
/** The most addresses in memory, about 150 bytes each. */
const addressesMax = 20_000

export class NewUsers extends Context.Service<
  NewUsers,
  {
    /** Whether the caller's first stored write must be admitted. */
    readonly counts: (caller: Call["caller"]) => boolean
    /** Counts a new user. Fails with 429 when their address has brought too many. */
    readonly admit: (call: Pick<Call, "request">) => Effect.Effect<void, Refused>
  }
>()("bellcast/gateway/NewUsers") {
  static readonly layer = Layer.effect(
    NewUsers,
    Effect.gen(function* () {
      const { newUsersPerAddressPerHourMax: max } = yield* GatewaySettings
      const rate = makeRate(Math.max(max, 1), hourMillis, addressesMax)
      const warn = makeRateLimitedLog(
        "new users are refused: an address brings too many " +
          "(BELLCAST_NEW_USERS_PER_ADDRESS_PER_HOUR_MAX; " +
          "behind a proxy BELLCAST_TRUSTED_PROXIES must name it)"
      )
      const counts = (caller: Call["caller"]) => max > 0 && caller?.verified !== true
      const admit = Effect.fnUntraced(function* ({ request }: Pick<Call, "request">) {
        const waitMillis = rate.take(request.address, yield* monotonicMillis)
        if (waitMillis === 0) return
        yield* warn({ max })
        const headers = { "Retry-After": String(Math.ceil(waitMillis / 1000)) }
        return yield* refuse("tooManyNewUsers", { headers })
      })
      return NewUsers.of({ counts, admit })
    })
  )
}
