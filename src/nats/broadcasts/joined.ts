// Finds the channels of a broadcast that nobody is registered to: their names may be misspelt.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { makeExpiringMap } from "#basics/expiring-map.ts"
import { monotonicMillis } from "#clock/monotonic.ts"
import { keys } from "#streams/buckets.ts"
import type { ChannelToken } from "#streams/tokens.ts"
import { Buckets } from "../kv/bucket.ts"

/** Channels in memory: about 300 bytes each. */
const knownMax = 10_000
/** A channel that was joined counts as joined for so long. */
const knownMillis = 60_000
const readsAtOnce = 16
/** A response to a publisher waits no longer for what is only a warning. */
const readMillis = 250

export class JoinedChannels extends Context.Service<
  JoinedChannels,
  {
    /**
     * Returns which of the channels nobody is registered to. One that was joined costs a request a
     * minute; one that cannot be read in 250 ms counts as joined.
     */
    readonly without: (
      channels: ReadonlyArray<ChannelToken>
    ) => Effect.Effect<ReadonlyArray<ChannelToken>>
  }
>()("bellcast/nats/JoinedChannels") {
  static readonly layer = Layer.effect(
    JoinedChannels,
    Effect.gen(function* () {
      const buckets = yield* Buckets
      const known = makeExpiringMap<true>(knownMax)
      const isEmpty = (channel: ChannelToken, now: number) =>
        buckets.get("channels", keys.channelRegistrations(channel)).pipe(
          Effect.map((entry) => {
            const isJoined = (entry?.value.registrations ?? 0) > 0
            if (isJoined) known.set(channel, true, now + knownMillis)
            return !isJoined
          }),
          Effect.timeoutOrElse({ duration: readMillis, orElse: () => Effect.succeed(false) }),
          Effect.orElseSucceed(() => false)
        )
      return JoinedChannels.of({
        without: Effect.fnUntraced(function* (channels: ReadonlyArray<ChannelToken>) {
          const now = yield* monotonicMillis
          return yield* Effect.filter(
            channels.filter((channel) => known.get(channel, now) === undefined),
            (channel) => isEmpty(channel, now),
            { concurrency: readsAtOnce }
          )
        })
      })
    })
  )
}
