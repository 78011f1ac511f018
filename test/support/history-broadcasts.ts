// The broadcasts of the history: their plans and outcomes.
import { Effect } from "effect"
import type { Fate, PushResult } from "#domain/outcome.ts"
import type { StoredReason } from "#domain/reason.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { type ChannelToken, directToken } from "#streams/tokens.ts"
import { subscriptionOf, userOf } from "./history-commands.ts"

/** The minimum revisions in plans: buckets that were rebuilt must not begin below it. */
export const planFloor = 5_000

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

/** Appends a broadcast to LOG. */
export const acceptOn = Effect.fnUntraced(function* (channel: ChannelToken) {
  const log = yield* EventLog
  const subject = subjects.broadcast("rest", channel)
  const data = { a: 1 }
  const { seq } = yield* channel === directToken
    ? log.append("log", { subject, type: "direct", body: { data, users: [userOf(1)] } })
    : log.append("log", { subject, type: "broadcast", body: { data } })
  return seq
})

/**
 * Appends the messages of one broadcast, in steps that a test can interleave. `scheduled`: it was
 * accepted before, and starts now.
 */
export const broadcastOn = Effect.fnUntraced(function* (
  channel: ChannelToken,
  shards: number,
  scheduled?: { readonly broadcast: number; readonly since: number }
) {
  const log = yield* EventLog
  const broadcast = scheduled?.broadcast ?? (yield* acceptOn(channel))
  const floor = { subscriptions: planFloor, registrations: planFloor }
  const acceptedAt = (yield* log.at("log", broadcast))!.at
  const plan = {
    broadcast,
    ...(scheduled === undefined ? {} : { since: scheduled.since }),
    depth: shards > 1 ? 1 : 0,
    shards,
    floor,
    acceptedAt,
    expiresAt: 90_000,
    at: 4_001
  }
  yield* log.append("work", {
    subject: subjects.plan(channel, broadcast),
    type: "plan",
    body: plan
  })
  return {
    broadcast,
    shard: (
      shard: string,
      pushes: number,
      fates: ReadonlyArray<readonly [number, Fate]>,
      final: boolean,
      at: number,
      counts: { readonly withoutSubscription?: number } = {}
    ) => {
      const results = fates.map(([n, fate]) => result(n, fate))
      return log.append("work", {
        subject: subjects.shardOutcome(channel, broadcast, shard),
        type: "outcome",
        body: { broadcast, pushes, results, final, at, ...counts }
      })
    },
    again: (n: number, fate: Fate, attempt: number, at: number) =>
      log.append("work", {
        subject: subjects.pushOutcome(channel, broadcast, userOf(n), subscriptionOf(n)),
        type: "outcome",
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
