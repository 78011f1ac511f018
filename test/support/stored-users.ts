// Users with a subscription and a registration each, stored in LOG as a service stores them: for
// rebuilds of many entries, which no service has to fold first.
import { createHash } from "node:crypto"
import { Effect } from "effect"
import { provision } from "#nats/admin/provision.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken, type UserToken } from "#streams/tokens.ts"

const appendsInFlight = 512

const hashOf = (n: number) => createHash("sha256").update(String(n))

/** Stores users number `from` up to before `to`. `bytes`: of a member of each subscription. */
export const storeUsers = (
  url: string,
  { bytes = 0, from = 0, to }: { from?: number; to: number; bytes?: number }
): Promise<void> =>
  Effect.gen(function* () {
    yield* provision(1)
    const log = yield* EventLog
    const news = channelToken("news")
    const note = "x".repeat(bytes)
    const storeOne = (n: number) => {
      const user = hashOf(n).digest().subarray(0, 16).toString("base64url") as UserToken
      const id = hashOf(n).digest("hex")
      const name = `basicauth:user${n}`
      const data = {
        endpoint: `https://push.example.com/send/${hashOf(n).digest("base64url")}`,
        keys: { auth: id.slice(0, 22), p256dh: `B${id}`.padEnd(87, "A") },
        ...(bytes > 0 && { note })
      }
      const put = { user: name, id, data, lastModified: 1_000 + n }
      return Effect.all([
        log.append("log", {
          subject: subjects.subscription(user),
          type: "subscription.put",
          body: put
        }),
        log.append("log", {
          subject: subjects.registration(news, user),
          type: "registration.put",
          body: { user: name, at: 1_000 + n }
        })
      ])
    }
    const numbers = Array.from({ length: to - from }, (_, n) => from + n)
    yield* Effect.forEach(numbers, storeOne, { concurrency: appendsInFlight, discard: true })
  }).pipe(Effect.provide(natsLayer({ url, name: "stored users" })), Effect.runPromise)
