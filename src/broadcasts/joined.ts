// Finds the channels of a broadcast that nobody is registered to: their names may be misspelt.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { monotonicMillis } from "#clock/clocks.ts"
import { Caches, MemoryCache } from "#memory/cache-memory.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"
import type { ChannelToken } from "#streams/tokens.ts"

/** Of V8's heap, for a channel in memory, without its name. */
const channelBytes = 300
/** A channel that was joined counts as joined for so long. */
const joinedMillis = 60_000
/**
 * A channel that nobody had joined counts as such for so long. Without this each broadcast to it
 * would cost two requests, and half as much CPU again.
 */
const emptyMillis = 200
const readsAtOnce = 16
/** A response to a publisher waits no longer for what is only a warning. */
const readMillis = 250

export class JoinedChannels extends Context.Service<
  JoinedChannels,
  {
    /**
     * Returns which of the channels nobody is registered to. One that was joined is read once a
     * minute, another five times a second; one that cannot be read in 250 ms counts as joined.
     */
    readonly without: (
      channels: ReadonlyArray<ChannelToken>
    ) => Effect.Effect<ReadonlyArray<ChannelToken>>
  }
>()("bellcast/broadcasts/JoinedChannels") {
  static readonly layer = Layer.effect(
    JoinedChannels,
    Effect.gen(function* () {
      const buckets = yield* Buckets
      const known = new MemoryCache<"joined" | "empty">((yield* Caches).share("channels"), 1)
      const readIsEmpty = (channel: ChannelToken, now: number) =>
        buckets.get("channels", keys.channelRegistrations(channel)).pipe(
          Effect.map((entry) => {
            const isJoined = (entry?.value.registrations ?? 0) > 0
            const bytes = channelBytes + channel.length
            if (isJoined) known.set(channel, "joined", bytes, now + joinedMillis)
            else known.set(channel, "empty", bytes, now + emptyMillis)
            return !isJoined
          }),
          Effect.timeoutOrElse({ duration: readMillis, orElse: () => Effect.succeed(false) }),
          Effect.orElseSucceed(() => false)
        )
      return JoinedChannels.of({
        without: Effect.fnUntraced(function* (channels: ReadonlyArray<ChannelToken>) {
          const now = yield* monotonicMillis
          const isEmpty = (channel: ChannelToken) => {
            const found = known.get(channel, now)
            return found === undefined
              ? readIsEmpty(channel, now)
              : Effect.succeed(found === "empty")
          }
          const unjoined = channels.filter((channel) => known.get(channel, now) !== "joined")
          return yield* Effect.filter(unjoined, isEmpty, { concurrency: readsAtOnce })
        })
      })
    })
  )
}
