// A history for tests: hundreds of commands in every order, five broadcasts in different states,
// and the stages that fold them.

import { Effect, Layer, References, Schedule } from "effect"
import { provision } from "#nats/admin/provision.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { projectionLayer } from "#projection/projector.ts"
import { rebuild } from "#rebuild/rebuild.ts"
import { metaKey, projections } from "#streams/buckets.ts"
import { subjects } from "#streams/subjects.ts"
import { type ChannelToken, directToken } from "#streams/tokens.ts"
import { tallyLayer } from "#tally/tally.ts"
import { acceptOn, broadcastOn } from "./history-broadcasts.ts"
import { appendCommands, channels, subscriptionOf, userOf } from "./history-commands.ts"
import { startNats } from "./nats.ts"
import { connectAdmin } from "./nats-admin.ts"
import { useShared } from "./use-service.ts"

/** Some messages of the history are malformed, and the stages that fold them log warnings. */
export const quiet = Layer.succeed(References.MinimumLogLevel, "Error")

/** The projector and the tally with a provisioned server, as a service runs them. */
export const foldingLayer = (url: string) =>
  Layer.merge(projectionLayer, tallyLayer).pipe(
    Layer.provide(Layer.effectDiscard(provision(1))),
    Layer.provideMerge(natsLayer({ url, name: "history" })),
    Layer.provideMerge(quiet)
  )

/**
 * Makes the history. `done` has finished after retries; `open` has one push waiting and one
 * retrying; `empty` has no recipients; `lost` delivered nothing; `mixed` ends with a refused push.
 * `done` and `open` share a channel, and their outcomes alternate. `scheduled` was accepted before
 * its channel began, and started later.
 */
export const makeHistory = Effect.gen(function* () {
  const log = yield* EventLog
  const [news, weather, bell] = channels as [ChannelToken, ChannelToken, ChannelToken]
  const early = yield* acceptOn(bell)
  const lastCommand = yield* appendCommands
  const done = yield* broadcastOn(news, 2)
  const open = yield* broadcastOn(news, 2)
  const empty = yield* broadcastOn(weather, 0)
  const lost = yield* broadcastOn(bell, 1)
  const mixed = yield* broadcastOn(weather, 1)
  const direct = yield* broadcastOn(directToken, 1)
  const late = { broadcast: early, since: direct.broadcast }
  const scheduled = yield* broadcastOn(bell, 1, late)
  const first = [
    [1, "delivered"],
    [2, "retrying"],
    [3, "gone"]
  ] as const
  yield* done.shard("0", 4, first, false, 5_001)
  yield* open.shard("0", 3, [[1, "delivered"]], false, 5_002)
  yield* done.shard("0", 0, [[4, "dead"]], true, 5_003)
  yield* lost.shard(
    "all",
    2,
    [
      [1, "gone"],
      [2, "expired"]
    ],
    true,
    5_004
  )
  yield* done.again(2, "retrying", 2, 5_005)
  yield* open.shard("0", 0, [[2, "retrying"]], false, 5_006)
  yield* done.shard("1", 0, [], true, 5_007)
  yield* direct.shard("all", 1, [[1, "delivered"]], true, 5_007, { withoutSubscription: 1 })
  yield* mixed.shard("all", 2, [[5, "delivered"]], false, 5_008)
  yield* mixed.shard("all", 0, [[6, "dead"]], true, 5_009)
  yield* done.again(2, "delivered", 3, 5_010)
  yield* scheduled.shard("all", 1, [[1, "delivered"]], true, 5_011)
  const dead = {
    ...({
      broadcast: done.broadcast,
      channel: news,
      acceptedAt: 4_000,
      expiresAt: 90_000,
      urgency: "normal",
      user: userOf(4)
    } as const),
    ...{
      subscription: subscriptionOf(4),
      generation: 1,
      reason: "refused" as const,
      status: 400,
      attempts: 1,
      at: 5_003
    }
  }
  const letter = subjects.deadLetter(news, done.broadcast, userOf(4), subscriptionOf(4))
  const { seq: lastWork } = yield* log.append("work", {
    subject: letter,
    type: "dead",
    body: dead
  })
  return {
    lastCommand,
    lastWork,
    done: done.broadcast,
    open: open.broadcast,
    empty: empty.broadcast,
    lost: lost.broadcast,
    mixed: mixed.broadcast,
    scheduled: scheduled.broadcast
  }
})

/** Returns when a follower has stored what it folded up to a message. */
const storedTo = Effect.fnUntraced(function* (bucket: "broadcasts" | "subscriptions", seq: number) {
  const buckets = yield* Buckets
  yield* buckets.get(bucket, metaKey).pipe(
    Effect.repeat({
      until: (meta) => ((meta?.value as { seq?: number } | undefined)?.seq ?? 0) >= seq,
      schedule: Schedule.spaced("20 millis")
    }),
    Effect.timeout("20 seconds")
  )
})

/** Returns when projector and tally have stored all of it. */
export const folded = Effect.fnUntraced(function* (lastOutcome: number) {
  const log = yield* EventLog
  const { seq } = yield* log.append("log", {
    subject: subjects.subscription(userOf(0)),
    type: "subscription.delete",
    body: { user: "user 0", removed: [] }
  })
  yield* storedTo("subscriptions", seq)
  yield* storedTo("broadcasts", lastOutcome)
})

/** Makes the buckets of a server anew, as `bellcast rebuild` does. */
export const rebuildAt = (url: string) =>
  Effect.runPromise(
    rebuild().pipe(Effect.provide(Layer.merge(natsLayer({ url, name: "test" }), quiet)))
  )

/** A server with a past that a service has folded; the service has stopped. */
export const startWithHistory = async () => {
  const nats = await startNats({ syncAlways: false })
  const past = await Effect.runPromise(
    Effect.gen(function* () {
      const past = yield* makeHistory
      yield* folded(past.lastWork - 1)
      return past
    }).pipe(Effect.provide(foldingLayer(nats.url)))
  )
  return { ...past, url: nats.url, [Symbol.asyncDispose]: () => nats[Symbol.asyncDispose]() }
}

/** The same for all cases of a file. */
export const useHistory = () =>
  useShared(async (opened) => ({ history: opened.use(await startWithHistory()) }))

export const bucketStreams = projections.map((bucket) => `KV_bellcast_${bucket}`)

/** The server as an administrator has it. */
export const administer = async (url: string) => {
  const admin = await connectAdmin(url)
  const { jsm } = admin
  return {
    ...admin,
    /** Every entry of the buckets, as it is stored, but the checkpoints. */
    entries: async (): Promise<Record<string, string>> => {
      const found: Record<string, string> = {}
      for (const stream of bucketStreams) {
        const { state } = await jsm.streams.info(stream)
        for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
          const message = await jsm.streams.getMessage(stream, { seq })
          if (message !== null && !message.subject.endsWith(`.${metaKey}`))
            found[message.subject] = message.string()
        }
      }
      return found
    }
  }
}
