// A rebuild of a LOG in which users store browsers of others, and no message says that the others
// lost them: the rebuild appends these messages once it has read all of LOG.
import { Effect, Layer } from "effect"
import { assert, it } from "vitest"
import { endpointHash } from "#domain/subscription/owners.ts"
import { provision } from "#nats/admin/provision.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { rebuild } from "#rebuild/rebuild.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { administer, folded, foldingLayer, quiet } from "../support/history.ts"
import { userOf } from "../support/history-commands.ts"
import { startNats } from "../support/nats.ts"

const put = (n: number, endpoint: number) => {
  const url = `https://push.example.com/${endpoint}`
  return {
    subject: subjects.subscription(userOf(n)),
    type: "subscription.put",
    body: {
      user: `user ${n}`,
      id: endpointHash(url),
      data: { endpoint: url, keys: { auth: "aaaa", p256dh: "aaaa" } },
      lastModified: endpoint + 10 * n
    }
  } as const
}

it("ends the registrations of a stand-in whose move a LOG does not complete", {
  timeout: 60_000
}, async () => {
  await using server = await startNats({ syncAlways: false })
  await using admin = await administer(server.url)
  const nats = Layer.merge(natsLayer({ url: server.url, name: "test" }), quiet)
  const registrations = async () =>
    Object.entries(await admin.entries()).flatMap(([subject, text]) => {
      const [, channel] = /^\$KV\.bellcast_registrations\.(news|sport)\./.exec(subject) ?? []
      if (channel === undefined) return []
      const who = subject.endsWith(userOf(1)) ? "stand-in" : "user"
      return [`${channel} ${who} ${JSON.parse(text).on}`]
    })
  const joins = (channel: string, n: number, user: string) =>
    ({
      subject: subjects.registration(channelToken(channel), userOf(n)),
      type: "registration.put",
      body: { user, at: 1 }
    }) as const
  const standIn = put(1, 1)
  await Effect.gen(function* () {
    yield* provision(1)
    const log = yield* EventLog
    for (const channel of ["news", "sport"]) yield* log.append("log", joins(channel, 1, "import:1"))
    yield* log.append("log", { ...standIn, body: { ...standIn.body, user: "import:1" } })
    for (const channel of ["news", "sport"]) yield* log.append("log", joins(channel, 2, "user 2"))
    yield* log.append("log", put(2, 1))
  }).pipe(Effect.provide(nats), Effect.runPromise)
  await Effect.runPromise(rebuild().pipe(Effect.provide(nats)))
  assert.sameMembers(await registrations(), [
    "news stand-in false",
    "sport stand-in false",
    "news user true",
    "sport user true"
  ])
  const entries = await admin.entries()
  assert.equal(JSON.parse(entries["$KV.bellcast_channels.news.registrations"]!).registrations, 1)
  await Effect.runPromise(rebuild().pipe(Effect.provide(nats)))
  assert.deepEqual(await admin.entries(), entries)
})

it("completes the moves of a LOG with one message for each user", {
  timeout: 60_000
}, async () => {
  await using server = await startNats({ syncAlways: false })
  await using admin = await administer(server.url)
  const nats = Layer.merge(natsLayer({ url: server.url, name: "test" }), quiet)
  const messages = async () => (await admin.jsm.streams.info("BELLCAST_LOG")).state.messages
  const others = Array.from({ length: 600 }, (_, i) => i + 10)
  await Effect.gen(function* () {
    yield* provision(1)
    const log = yield* EventLog
    for (const endpoint of [1, 2, 3]) yield* log.append("log", put(1, endpoint))
    yield* log.append("log", put(2, 1))
    // 600 commands are more than a rebuild applies together.
    yield* Effect.forEach(others, (each) => log.append("log", put(3 + (each % 50), each)), {
      concurrency: 64,
      discard: true
    })
    for (const endpoint of [2, 1]) yield* log.append("log", put(2 + endpoint, endpoint))
  }).pipe(Effect.provide(nats), Effect.runPromise)
  const before = await messages()
  await Effect.runPromise(rebuild().pipe(Effect.provide(nats)))
  assert.equal(await messages(), before + 2)
  const entries = await admin.entries()
  const list = JSON.parse(entries[`$KV.bellcast_subscriptions.${userOf(1)}`]!)
  assert.deepEqual(Object.keys(list.subscriptions), [endpointHash("https://push.example.com/3")])
  await Effect.runPromise(rebuild().pipe(Effect.provide(nats)))
  assert.deepEqual(await admin.entries(), entries)
  // A projector begins behind what the rebuild appended.
  await Effect.runPromise(folded(0).pipe(Effect.provide(foldingLayer(server.url))))
  const { [`$KV.bellcast_subscriptions.${userOf(0)}`]: _, ...after } = await admin.entries()
  assert.deepEqual(after, entries)
})
