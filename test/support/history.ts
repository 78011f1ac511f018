// A history for tests: hundreds of commands in every order, five broadcasts in different states,
// and the stages that fold them.

import { Effect, Layer, References, Schedule } from "effect"
import fc from "fast-check"
import type { Fate, PushResult } from "#domain/outcome.ts"
import type { StoredReason } from "#domain/reason.ts"
import { provision } from "#nats/admin/provision.ts"
import { Watermark } from "#nats/follower/watermark.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { projectionLayer } from "#projection/projector.ts"
import { metaKey, projections } from "#streams/buckets.ts"
import { subjects } from "#streams/subjects.ts"
import { type ChannelToken, channelToken, type UserToken } from "#streams/tokens.ts"
import { tallyLayer } from "#tally/tally.ts"
import { startNats } from "./nats.ts"
import { connectAdmin } from "./nats-admin.ts"

export const userOf = (n: number) => Buffer.alloc(16, n + 1).toString("base64url") as UserToken
export const subscriptionOf = (n: number) => n.toString(16).padStart(2, "0").repeat(32)
export const channels = ["news", "wetter süd", "\u{1f514}"].map(channelToken)

/** The revision that plans name; buckets made anew must not begin below it. */
export const planFloor = 5_000

/** Some of the past is malformed, and whoever folds it says so. */
export const quiet = Layer.succeed(References.MinimumLogLevel, "Error")

/** The projector and the tally with a provisioned server, as a service runs them. */
export const foldingLayer = (url: string) =>
  Layer.merge(projectionLayer, tallyLayer).pipe(
    Layer.provide(Layer.effectDiscard(provision(1))),
    Layer.provideMerge(natsLayer({ url, name: "history" })),
    Layer.provideMerge(quiet)
  )

const wish = fc.record({
  what: fc.constantFrom(
    "register",
    "register",
    "register",
    "unregister",
    "put",
    "put",
    "delete",
    "gone",
    "struck",
    "struck",
    "suspended",
    "cleared",
    "matched",
    "malformed"
  ),
  user: fc.nat(11),
  channel: fc.nat(channels.length - 1),
  subscription: fc.nat(2),
  at: fc.nat(1_000)
})

/**
 * Grants, grants again, revokes, and a rejected grant. Returns the sequence of the last command.
 */
const appendPublishers = Effect.gen(function* () {
  const log = yield* EventLog
  const subject = subjects.publisher(channels[0]!)
  for (const principal of [
    "basicauth:b",
    "basicauth:a",
    "basicauth:c",
    "basicauth:b",
    "no principal"
  ])
    yield* log.append("log", { subject, type: "publisher.put/1", body: { principal, at: 1 } })
  return (yield* log.append("log", {
    subject,
    type: "publisher.delete/1",
    body: { principal: "basicauth:c", at: 2 }
  })).seq
})

/** Appends commands; the same ones on every run. Returns the sequence of the last. */
const appendCommands = Effect.gen(function* () {
  const log = yield* EventLog
  const puts = new Map<string, number>()
  for (const [i, { at, channel, subscription, user, what }] of fc
    .sample(wish, { numRuns: 240, seed: 7 })
    .entries()) {
    const subject = subjects.subscription(userOf(user))
    const place = subjects.registration(channels[channel]!, userOf(user))
    const id = subscriptionOf(subscription)
    const name = `user ${user}`
    const append = () => {
      if (what === "register")
        return log.append("log", {
          subject: place,
          type: "registration.put/1",
          // Some users may hold two: the third is refused.
          body: { user: name, at, ...(user % 3 === 0 ? { registrationsMax: 2 } : {}) }
        })
      if (what === "unregister")
        return log.append("log", {
          subject: place,
          type: "registration.delete/1",
          body: { user: name, at }
        })
      if (what === "delete") {
        const removed = [{ id, lastModified: 2_000 + i }]
        return log.append("log", {
          subject,
          type: "subscription.delete/1",
          body: { user: name, removed }
        })
      }
      if (what === "gone") {
        const generation = puts.get(`${user}.${id}`) ?? 0
        return log.append("log", {
          subject,
          type: "subscription.gone/1",
          body: { id, generation, broadcast: 1, status: 410, at }
        })
      }
      const of = { id, generation: puts.get(`${user}.${id}`) ?? 0, at }
      const evidence = { ...of, broadcast: 1, cause: "unknown-host", worker: "w" } as const
      if (what === "struck")
        return log.append("log", {
          subject,
          type: "subscription.struck/1",
          body: { ...evidence, strike: 1 + (at % 2) }
        })
      if (what === "suspended")
        return log.append("log", { subject, type: "subscription.suspended/1", body: evidence })
      if (what === "cleared")
        return log.append("log", {
          subject,
          type: "subscription.cleared/1",
          body: { ...of, by: "push" }
        })
      if (what === "matched")
        return log.append("log", {
          subject,
          type: "subscription.matched/1",
          body: { ...of, vapidKey: `key ${at}` }
        })
      if (what === "malformed")
        return log.append("log", {
          subject,
          type: "subscription.put/1",
          body: { user: name } as never
        })
      const data = {
        endpoint: `https://push.example.com/${user}/${i}?ü=${subscription}`,
        keys: { auth: "a", p256dh: "p" },
        z: { "2": [], "10": null }
      }
      return log.append("log", {
        subject,
        type: "subscription.put/1",
        body: { user: name, id, data, lastModified: 2_000 + i }
      })
    }
    const { seq } = yield* append()
    if (what === "put") puts.set(`${user}.${id}`, seq)
  }
  return yield* appendPublishers
})

const result = (n: number, fate: Fate, attempt = 1): PushResult => ({
  user: userOf(n),
  subscription: subscriptionOf(n),
  fate,
  ...(fate === "gone"
    ? { status: 410 }
    : fate === "expired"
      ? {}
      : { status: fate === "delivered" ? 201 : 503 }),
  reason: (fate === "delivered" ? "accepted" : fate) as StoredReason,
  attempt,
  millis: 12,
  at: 5_000
})

/** What WORK is told of one broadcast, in steps that a test can interleave. */
const broadcastOn = Effect.fnUntraced(function* (channel: ChannelToken, shards: number) {
  const log = yield* EventLog
  const { seq: broadcast } = yield* log.append("log", {
    subject: subjects.broadcast("rest", channel),
    type: "broadcast/1",
    body: { data: { a: 1 } }
  })
  const floor = { subscriptions: planFloor, registrations: planFloor }
  const plan = {
    broadcast,
    depth: shards > 1 ? 1 : 0,
    shards,
    floor,
    acceptedAt: 4_000,
    expiresAt: 90_000,
    at: 4_001
  }
  yield* log.append("work", {
    subject: subjects.plan(channel, broadcast),
    type: "plan/1",
    body: plan
  })
  return {
    broadcast,
    shard: (
      shard: string,
      pushes: number,
      fates: ReadonlyArray<readonly [number, Fate]>,
      final: boolean,
      at: number
    ) =>
      log.append("work", {
        subject: subjects.shardOutcome(channel, broadcast, shard),
        type: "outcome/1",
        body: { broadcast, pushes, results: fates.map(([n, fate]) => result(n, fate)), final, at }
      }),
    again: (n: number, fate: Fate, attempt: number, at: number) =>
      log.append("work", {
        subject: subjects.pushOutcome(channel, broadcast, userOf(n), subscriptionOf(n)),
        type: "outcome/1",
        body: {
          broadcast,
          pushes: 0,
          results: [result(n, fate, attempt)],
          final: fate !== "retrying",
          at
        }
      })
  }
})

/**
 * Makes the history. `done` has finished after retries; `open` has one push waiting and one
 * retrying; `empty` has no recipients; `lost` delivered nothing; `mixed` ends with a refused push.
 * `done` and `open` share a channel, and their outcomes alternate.
 */
export const makeHistory = Effect.gen(function* () {
  const log = yield* EventLog
  const lastCommand = yield* appendCommands
  const [news, weather, bell] = channels as [ChannelToken, ChannelToken, ChannelToken]
  const done = yield* broadcastOn(news, 2)
  const open = yield* broadcastOn(news, 2)
  const empty = yield* broadcastOn(weather, 0)
  const lost = yield* broadcastOn(bell, 1)
  const mixed = yield* broadcastOn(weather, 1)
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
  yield* mixed.shard("all", 2, [[5, "delivered"]], false, 5_008)
  yield* mixed.shard("all", 0, [[6, "dead"]], true, 5_009)
  yield* done.again(2, "delivered", 3, 5_010)
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
    type: "dead/1",
    body: dead
  })
  return {
    lastCommand,
    lastWork,
    done: done.broadcast,
    open: open.broadcast,
    empty: empty.broadcast,
    lost: lost.broadcast
  }
})

/** Returns when projector and tally have folded all of it and said so. */
export const folded = Effect.fnUntraced(function* (lastOutcome: number) {
  const watermark = yield* Watermark
  const buckets = yield* Buckets
  const log = yield* EventLog
  const { seq } = yield* log.append("log", {
    subject: subjects.subscription(userOf(0)),
    type: "subscription.delete/1",
    body: { user: "user 0", removed: [] }
  })
  yield* watermark.reached(seq, 20_000)
  yield* buckets.get("broadcasts", metaKey).pipe(
    Effect.repeat({
      until: (meta) => ((meta?.value as { seq?: number } | undefined)?.seq ?? 0) >= lastOutcome,
      schedule: Schedule.spaced("20 millis")
    }),
    Effect.timeout("20 seconds")
  )
})

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
