// How long ago NATS stored a message. Its clock may be set back while a process waits for a time to
// pass since then: the wait would last as long as the clock goes back.
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { LruCache } from "#basics/bounded.ts"
import { monotonicMillis } from "#clock/clocks.ts"

/** One that is forgotten is judged by its stored time alone. */
const messagesMax = 10_000

export class Elapsed extends Context.Service<
  Elapsed,
  {
    /**
     * Milliseconds since a message was stored at `at`, and not fewer than those since this process
     * asked first. `message` names it.
     */
    readonly since: (message: string, at: number) => Effect.Effect<number>
  }
>()("bellcast/delivery/Elapsed") {
  static readonly layer = Layer.sync(Elapsed, () => {
    const asked = new LruCache<number>(messagesMax)
    return {
      since: Effect.fnUntraced(function* (message, at) {
        const monotonic = yield* monotonicMillis
        const ownMillis = monotonic - asked.of(`${message} ${at}`, () => monotonic)
        return Math.max((yield* Clock.currentTimeMillis) - at, ownMillis)
      })
    }
  })
}
