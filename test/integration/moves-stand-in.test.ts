// A stand-in with more registrations than the projector ends at once.
import { Effect } from "effect"
import { assert, it } from "vitest"
import { endpointHash } from "#domain/subscription/owners.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { administer, foldingLayer } from "../support/history.ts"
import { userOf } from "../support/history-commands.ts"
import { startNats } from "../support/nats.ts"
import { agree } from "../support/owners.ts"

/** The projector ends 300 at once. */
const channels = Array.from({ length: 350 }, (_, i) => `channel-${i}`)
const endpoint = "https://push.example.com/1"

it("ends them all, once each, before it completes the move", { timeout: 60_000 }, async () => {
  await using server = await startNats({ syncAlways: false })
  await using admin = await administer(server.url)
  const join = (channel: string, n: number, user: string) =>
    ({
      subject: subjects.registration(channelToken(channel), userOf(n)),
      type: "registration.put",
      body: { user, at: 1 }
    }) as const
  const put = (n: number, user: string) =>
    ({
      subject: subjects.subscription(userOf(n)),
      type: "subscription.put",
      body: {
        user,
        id: endpointHash(endpoint),
        data: { endpoint, keys: { auth: "aaaa", p256dh: "aaaa" } },
        lastModified: n
      }
    }) as const
  await Effect.gen(function* () {
    const log = yield* EventLog
    const joining = channels.flatMap((channel) => [
      join(channel, 1, "import:1"),
      join(channel, 2, "user 2")
    ])
    yield* Effect.forEach(joining, (each) => log.append("log", each), {
      concurrency: 64,
      discard: true
    })
    yield* log.append("log", put(1, "import:1"))
    yield* log.append("log", put(2, "user 2"))
  }).pipe(Effect.provide(foldingLayer(server.url)), Effect.runPromise)
  await agree(server.url, admin)
  const { state } = await admin.jsm.streams.info("BELLCAST_LOG", {
    subjects_filter: "bellcast.cmd.registration.>"
  })
  // Two registrations for each channel, and an end.
  const counts = Object.values(state.subjects ?? {})
  assert.equal(
    counts.reduce((sum, count) => sum + count, 0),
    3 * channels.length
  )
  const last = await admin.jsm.streams.getMessage("BELLCAST_LOG", { seq: state.last_seq })
  assert.equal(last?.subject, subjects.subscription(userOf(1)))
})
