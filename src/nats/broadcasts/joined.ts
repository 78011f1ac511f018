// Finds the channels of a broadcast that nobody is registered to: their names may be misspelt.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { addBounded } from "#basics/bounded.ts"
import { keys } from "#streams/buckets.ts"
import type { ChannelToken } from "#streams/tokens.ts"
import { Buckets } from "../kv/bucket.ts"

/** Channels in memory: about 300 bytes each. */
const knownMax = 10_000
const readsAtOnce = 16
/** A response to a publisher waits no longer for what is only a warning. */
const readMillis = 250

export class JoinedChannels extends Context.Service<
  JoinedChannels,
  {
    /**
     * Returns which of the channels nobody is registered to. A channel costs a request until this
     * process knows that it was joined; one that cannot be read in 250 ms counts as joined.
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
      const known = new Set<ChannelToken>()
      const isEmpty = (channel: ChannelToken) =>
        buckets.get("channels", keys.channelRegistrations(channel)).pipe(
          Effect.map((entry) => {
            const isJoined = (entry?.value.registrations ?? 0) > 0
            if (isJoined) addBounded(known, channel, knownMax)
            return !isJoined
          }),
          Effect.timeoutOrElse({ duration: readMillis, orElse: () => Effect.succeed(false) }),
          Effect.orElseSucceed(() => false)
        )
      return JoinedChannels.of({
        without: (channels) =>
          Effect.filter(
            channels.filter((channel) => !known.has(channel)),
            isEmpty,
            { concurrency: readsAtOnce }
          )
      })
    })
  )
}
