// Subscribers by the thousand, appended straight onto the log as an internal service would: the gateway is measured elsewhere.
import { randomBytes } from "node:crypto"
import { Effect } from "effect"
import { logLayer } from "#log/layer.ts"
import { Log } from "#log/log.ts"
import { Watermark } from "#log/watermark.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken, type UserToken } from "#streams/tokens.ts"
import type { SubscriptionJson } from "../support/user-agent.ts"

const appendsInFlight = 256
const appliedMillis = 600_000

/** One user a subscription; the first `size` of them registered to the channel `bench-<size>`, for each size. Returns when all is projected. */
export const fill = (
  natsUrl: string,
  subscriptions: ReadonlyArray<SubscriptionJson>,
  sizes: ReadonlyArray<number>
): Promise<void> =>
  Effect.gen(function* () {
    const log = yield* Log
    const at = Date.now()
    const users = subscriptions.map((subscription, i) => ({
      subscription,
      name: `user${i}`,
      token: randomBytes(16).toString("base64url") as UserToken
    }))
    const put = ({ name, subscription, token }: (typeof users)[number]) =>
      log.append("log", {
        subject: subjects.subscription(token),
        type: "subscription.put/1",
        body: {
          user: name,
          id: randomBytes(16).toString("hex"),
          data: { endpoint: subscription.endpoint, keys: subscription.keys },
          lastModified: at
        }
      })
    const register = (size: number) => (user: (typeof users)[number]) =>
      log.append("log", {
        subject: subjects.registration(channelToken(`bench-${size}`), user.token),
        type: "registration.put/1",
        body: { user: user.name, at }
      })
    const options = { concurrency: appendsInFlight, discard: true } as const
    yield* Effect.forEach(users, put, options)
    for (const size of sizes) yield* Effect.forEach(users.slice(0, size), register(size), options)
    const { seq } = yield* register(sizes[0]!)(users[0]!)
    yield* (yield* Watermark).reached(seq, appliedMillis)
  }).pipe(Effect.provide(logLayer({ url: natsUrl, name: "bench" })), Effect.runPromise)
