// LOG and the buckets lose, with the end of the history, the messages and entries that are left of
// an erasure, a draft, a channel without users, a killed gateway and an ended endpoint.
import { Effect, Schedule } from "effect"
import { assert, it } from "vitest"
import { draftHeaders } from "#domain/draft.ts"
import { endpointHash } from "#domain/subscription/owners.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { channelToken, directToken } from "#streams/tokens.ts"
import { administer, folded, foldingLayer, rebuildAt } from "../support/history.ts"
import { broadcastOn } from "../support/history-broadcasts.ts"
import { userOf } from "../support/history-commands.ts"
import { startNats } from "../support/nats.ts"
import { differencesAt, trimAt } from "../support/trimmed.ts"

const channel = channelToken("alone")
const user = userOf(40)
const author = userOf(41)
/** Broadcasts that LOG does not have any more. */
const [cancelled, finished] = [9_000_001, 9_000_002]

const putDraft = Effect.fnUntraced(function* (at: number) {
  const draft = { data: { n: at }, to: { channels: ["alone"] } }
  const body = { author: "user 41", user: author, changedBy: "user 41", at, draft }
  const subject = subjects.draft("weekly")
  return (yield* (yield* EventLog).append("log", { subject, type: "draft.put", body })).seq
})

/** A draft is published, and its id is used again. Returns the broadcast and its final counts. */
const publishDraft = Effect.gen(function* () {
  const log = yield* EventLog
  const seq = yield* putDraft(1)
  const { seq: broadcast } = yield* log.append("log", {
    subject: subjects.broadcast("rest", channel),
    type: "broadcast",
    body: { data: { n: 1 } },
    headers: draftHeaders({ id: "weekly", seq, user: author })
  })
  yield* broadcastOn(channel, 0, { broadcast, since: broadcast })
  const end = yield* log.last("log", subjects.finished(channel, broadcast)).pipe(
    Effect.repeat({
      until: (fact) => fact !== undefined,
      schedule: Schedule.spaced("20 millis")
    }),
    Effect.timeout("20 seconds")
  )
  return { broadcast, end: end!, form: yield* putDraft(2) }
})

/** The last changes of letters to erased users. Returns the sequences of what stayed of these. */
const leaveChanges = Effect.fnUntraced(function* (counts: object) {
  const { append } = yield* EventLog
  const changeOf = (broadcast: number) =>
    append("log", {
      subject: subjects.state(broadcast),
      type: "broadcast.cancelled",
      body: { broadcast, channel: directToken, run: 0, by: "erasure", at: 1 }
    })
  const { seq: first } = yield* changeOf(cancelled)
  const { seq: second } = yield* changeOf(finished)
  const { seq: end } = yield* append("log", {
    subject: subjects.finished(directToken, finished),
    type: "broadcast.finished",
    body: { ...counts, broadcast: finished } as never
  })
  return [first, second, end]
})

/** A part that a gateway stored before it was killed, and one that a broadcast names. */
const storeParts = Effect.gen(function* () {
  const { append } = yield* EventLog
  const part = { subject: subjects.part, type: "direct.part", body: { users: [author] } } as const
  const { seq: named } = yield* append("log", part)
  const { seq: unnamed } = yield* append("log", part)
  yield* append("log", {
    subject: subjects.broadcast("rest", directToken),
    type: "direct",
    body: { data: { n: 1 }, users: [author], parts: [named] }
  })
  return { named, unnamed }
})

/** A broadcast whose subject names no channel, and the fact that it was rejected. */
const rejectBroadcast = Effect.gen(function* () {
  const { append } = yield* EventLog
  const subject = "bellcast.cmd.broadcast.billing.=ZZ"
  const { seq: broadcast } = yield* append("log", { subject, type: "broadcast", body: {} })
  const body = { broadcast, subject, reason: "no channel", at: 1 }
  const rejected = { subject: subjects.rejected(broadcast), type: "broadcast.rejected" } as const
  const { seq: fact } = yield* append("log", { ...rejected, body })
  return [broadcast, fact]
})

const endSubscription = Effect.gen(function* () {
  const { append } = yield* EventLog
  const endpoint = "https://push.example.com/40"
  const [subject, id] = [subjects.subscription(user), endpointHash(endpoint)]
  const data = { endpoint, keys: { auth: "a", p256dh: "p" } }
  const { seq: generation } = yield* append("log", {
    subject,
    type: "subscription.put",
    body: { user: "user 40", id, data, lastModified: 10 }
  })
  const of = { id, generation, broadcast: 1, status: 410, cause: "gone", at: 11 } as const
  yield* append("log", { subject, type: "subscription.gone", body: of })
})

it("leaves nothing that nobody reads any more", async () => {
  await using nats = await startNats({ syncAlways: false })
  await using admin = await administer(nats.url)
  const past = Effect.gen(function* () {
    const { broadcast, end, form } = yield* publishDraft
    const { type: _, ...counts } = end.message
    const left = yield* leaveChanges(counts)
    const { seq: begun } = yield* (yield* EventLog).append("log", {
      subject: subjects.begun(channelToken("nobody")),
      type: "channel.begun",
      body: { lastModified: 1, since: 1, upTo: 1 }
    })
    const { named, unnamed } = yield* storeParts
    const nowhere = yield* rejectBroadcast
    yield* endSubscription
    yield* folded(1)
    const going = [broadcast, end.seq, begun, unnamed, ...nowhere, ...left]
    return { going, staying: [form, named] }
  })
  const { going, staying } = await Effect.runPromise(
    past.pipe(Effect.provide(foldingLayer(nats.url)))
  )
  /** The pages of owners that name the user. */
  const pages = async () =>
    Object.entries(await admin.entries()).filter(
      ([subject, text]) => subject.startsWith("$KV.bellcast_subscriptions.=") && text.includes(user)
    )
  const isThere = (seq: number) =>
    admin.jsm.streams.getMessage("BELLCAST_LOG", { seq }).then(
      (message) => message !== null,
      () => false
    )
  await admin.jsm.streams.purge("BELLCAST_WORK", { filter: filters.planOf(going[0]!) })
  await rebuildAt(nats.url)
  assert.lengthOf(await pages(), 1)
  for (const seq of going) assert.isTrue(await isThere(seq), `message ${seq}`)
  await trimAt(nats.url)
  for (const seq of going) assert.isFalse(await isThere(seq), `message ${seq}`)
  for (const seq of staying) assert.isTrue(await isThere(seq), `message ${seq}`)
  assert.deepEqual(await pages(), [])
  assert.deepEqual(await differencesAt(nats.url), [])
}, 120_000)
