// Subscribers by the thousand, appended straight onto the log as an internal service would: without
// the gateway, for benches and for tests of what becomes of a broadcast.
import { randomBytes } from "node:crypto"
import { Effect } from "effect"
import { Watermark } from "#nats/follower/watermark.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken, type UserToken } from "#streams/tokens.ts"
import type { SubscriptionJson } from "./user-agent.ts"
import { tokenOf } from "./users.ts"

const appendsInFlight = 256
const appliedMillis = 600_000

export interface Channel {
  readonly name: string
  readonly subscriptions: ReadonlyArray<SubscriptionJson>
}

interface Users {
  /** Subscriptions of each user. */
  readonly browsersEach?: number
  /** The users are the basic users `user0` and so on, not new ones. */
  readonly areBasic?: boolean
}

/**
 * Registers users to the channels of their subscriptions; a subscription may be in several.
 * Returns when all is projected.
 */
export const fillChannels = (
  natsUrl: string,
  channels: ReadonlyArray<Channel>,
  { areBasic = false, browsersEach = 1 }: Users = {}
): Promise<void> =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const at = Date.now()
    const all = [...new Set(channels.flatMap(({ subscriptions }) => subscriptions))]
    const named = Array.from({ length: Math.ceil(all.length / browsersEach) }, (_, i) => ({
      name: `user${i}`,
      token: areBasic ? tokenOf(`user${i}`) : (randomBytes(16).toString("base64url") as UserToken)
    }))
    const users = new Map(
      all.map((subscription, i) => [subscription, named[Math.floor(i / browsersEach)]!])
    )
    const put = (subscription: SubscriptionJson) => {
      const { name, token } = users.get(subscription)!
      return log.append("log", {
        subject: subjects.subscription(token),
        type: "subscription.put",
        body: {
          user: name,
          id: randomBytes(16).toString("hex"),
          data: { endpoint: subscription.endpoint, keys: subscription.keys },
          lastModified: at
        }
      })
    }
    const register = (channel: string, { name, token }: (typeof named)[number]) =>
      log.append("log", {
        subject: subjects.registration(channelToken(channel), token),
        type: "registration.put",
        body: { user: name, at }
      })
    const options = { concurrency: appendsInFlight, discard: true } as const
    yield* Effect.forEach(all, put, options)
    for (const { name, subscriptions } of channels) {
      const members = new Set(subscriptions.map((each) => users.get(each)!))
      yield* Effect.forEach(members, (each) => register(name, each), options)
    }
    const { seq } = yield* register(channels[0]!.name, named[0]!)
    yield* (yield* Watermark).reached(seq, appliedMillis)
  }).pipe(Effect.provide(natsLayer({ url: natsUrl, name: "fill" })), Effect.runPromise)

/** The first `size` subscriptions are registered to the channel `bench-<size>`, for each size. */
export const fill = (
  natsUrl: string,
  subscriptions: ReadonlyArray<SubscriptionJson>,
  sizes: ReadonlyArray<number>
): Promise<void> =>
  fillChannels(
    natsUrl,
    sizes.map((size) => ({ name: `bench-${size}`, subscriptions: subscriptions.slice(0, size) }))
  )
