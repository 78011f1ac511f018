// Subjects of LOG with very many messages lose what is old of them, too: nobody can make a
// subject so long that it stays.
import { Effect, Layer } from "effect"
import { assert, it } from "vitest"
import { countUnneeded } from "#cli/compact.ts"
import { endpointHash } from "#domain/subscription/owners.ts"
import { natsLayer } from "#nats/layer.ts"
import type { Append } from "#nats/stream/append.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { channelToken, type UserToken } from "#streams/tokens.ts"
import { administer, folded, foldingLayer, rebuildAt } from "../support/history.ts"
import { acceptOn, broadcastOn } from "../support/history-broadcasts.ts"
import { userOf } from "../support/history-commands.ts"
import { startNats } from "../support/nats.ts"
import { differencesAt, noDays, trimAt } from "../support/trimmed.ts"

const channel = channelToken("long")
const [stays, leaves, renews] = [userOf(30), userOf(31), userOf(32)]

/** A user has three browsers, and each stores its subscription again and again. */
const subscriptionsOf = (user: UserToken, count: number) =>
  Array.from({ length: count }, (_, i) => {
    const subject = subjects.subscription(user)
    const endpoint = `https://push.example.com/${user}/${i % 3}`
    const id = endpointHash(endpoint)
    const name = `user ${user}`
    const data = { endpoint, keys: { auth: "a", p256dh: "p" } }
    const at = 1_000 + i
    return i % 7 === 6
      ? {
          subject,
          type: "subscription.delete",
          body: { user: name, removed: [{ id, lastModified: at }] }
        }
      : { subject, type: "subscription.put", body: { user: name, id, data, lastModified: at } }
  })

/** Two browsers, of which one asks for another secret again and again. */
const renewalsOf = (user: UserToken, count: number, generation: number) =>
  Array.from({ length: count }, (_, i) => ({
    subject: subjects.subscription(user),
    type: "subscription.renewable",
    body: {
      user: `user ${user}`,
      id: endpointHash(`https://push.example.com/${user}/1`),
      generation,
      renewal: `secret ${i}`,
      isRepeated: false,
      at: 2_000 + i
    }
  }))

const removeAll = (user: UserToken, at: number) => ({
  subject: subjects.subscription(user),
  type: "subscription.delete",
  body: {
    user: `user ${user}`,
    removed: [0, 1, 2].map((n) => ({
      id: endpointHash(`https://push.example.com/${user}/${n}`),
      lastModified: at + n
    }))
  }
})

const registrationsOf = (user: UserToken, count: number) =>
  Array.from({ length: count }, (_, i) => ({
    subject: subjects.registration(channel, user),
    type: i % 2 === 0 ? "registration.put" : "registration.delete",
    body: { user: `user ${user}`, at: 1_000 + i }
  }))

const changesOf = (broadcast: number, count: number) =>
  Array.from({ length: count }, (_, i) => {
    const body = { broadcast, channel, run: 0, by: "anna", at: i }
    return {
      subject: subjects.state(broadcast),
      type: i % 2 === 0 ? "broadcast.paused" : "broadcast.resumed",
      body: { ...body, ...(i % 2 === 0 ? { expiresAt: 90_000 } : { pausedAt: i }) }
    }
  })

type Any = Append<"subscription.put">
const appendAll = Effect.fnUntraced(function* (messages: ReadonlyArray<object>) {
  const { append } = yield* EventLog
  for (const message of messages) yield* append("log", message as Any)
})

/** Appends the messages of each subject in their order. Returns the broadcast. */
const makePast = Effect.gen(function* () {
  const { append } = yield* EventLog
  const broadcast = yield* acceptOn(channel)
  const { seq: part } = yield* append("log", {
    subject: subjects.part,
    type: "direct.part",
    body: { users: [stays] }
  })
  yield* append("log", {
    subject: subjects.state(broadcast),
    type: "broadcast.changed",
    body: { broadcast, channel, run: 0, by: "anna", at: 1, data: { n: 1 }, parts: [part] } as never
  })
  const [first, second] = subscriptionsOf(renews, 2)
  yield* append("log", first as Any)
  const { seq: generation } = yield* append("log", second as Any)
  yield* Effect.forEach(
    [
      renewalsOf(renews, 150, generation),
      subscriptionsOf(stays, 230),
      [...subscriptionsOf(leaves, 230), removeAll(leaves, 9_000)],
      registrationsOf(stays, 151),
      registrationsOf(leaves, 150),
      changesOf(broadcast, 150)
    ],
    appendAll,
    { concurrency: "unbounded", discard: true }
  )
  yield* broadcastOn(channel, 0, { broadcast, since: broadcast })
  yield* folded(0)
  // The trimmer looks at what is before the last checkpoint.
  yield* folded(0)
  return broadcast
})

it("leaves of long subjects what the present rests on", async () => {
  await using nats = await startNats({ syncAlways: false })
  const { url } = nats
  const broadcast = await Effect.runPromise(makePast.pipe(Effect.provide(foldingLayer(url))))
  await using admin = await administer(url)
  for (const filter of [filters.outcomesOf(broadcast), filters.planOf(broadcast)])
    await admin.jsm.streams.purge("BELLCAST_WORK", { filter })
  await rebuildAt(url)
  const listOf = async () =>
    JSON.parse((await admin.entries())[`$KV.bellcast_subscriptions.${stays}`]!)
  const { subscriptions } = await listOf()
  assert.lengthOf(Object.keys(subscriptions), 3)
  const counted = await Effect.runPromise(
    countUnneeded(Date.now() + 60_000).pipe(
      Effect.provide(Layer.merge(natsLayer({ url, name: "test" }), noDays))
    )
  )
  const all = Object.values(counted.going).reduce((sum, { messages }) => sum + messages, 0)
  assert.isAbove(all, 800)
  const deleted = await trimAt(url)
  assert.closeTo(deleted, all, 0.02 * all)
  const left = async (subject: string) => {
    const { state } = await admin.jsm.streams.info("BELLCAST_LOG", { subjects_filter: subject })
    return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0)
  }
  assert.isAtMost(await left(subjects.subscription(stays)), 12)
  assert.equal(await left(subjects.subscription(leaves)), 0)
  assert.isAtMost(await left(subjects.subscription(renews)), 4)
  assert.equal(await left(subjects.registration(channel, stays)), 1)
  assert.equal(await left(subjects.registration(channel, leaves)), 0)
  assert.equal(await left(subjects.state(broadcast)), 0)
  assert.equal(await left(subjects.part), 0)
  assert.equal(await left(subjects.broadcast("rest", channel)), 0)
  assert.deepEqual(await differencesAt(url), [])
  assert.deepEqual((await listOf()).subscriptions, subscriptions)
  await rebuildAt(url)
  assert.deepEqual((await listOf()).subscriptions, subscriptions)
}, 120_000)
