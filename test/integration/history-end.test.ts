// Old messages of LOG that nothing rests on are deleted, and all buckets made from what stays are
// those that were made from all, wherever a crash ends the deletion.
import { Effect, Layer } from "effect"
import fc from "fast-check"
import { assert, describe, expect, it } from "vitest"
import { countUnneeded } from "#cli/compact.ts"
import type { ChannelRegistrations } from "#domain/registration.ts"
import { endpointHash } from "#domain/subscription/owners.ts"
import { momentAt } from "#history/past.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { type Beside, essenceOf } from "#rebuild/rules.ts"
import type { BucketName } from "#streams/buckets.ts"
import { filters, subjects } from "#streams/subjects.ts"
import type { ChannelToken, UserToken } from "#streams/tokens.ts"
import {
  administer,
  folded,
  foldingLayer,
  makeHistory,
  quiet,
  rebuildAt
} from "../support/history.ts"
import { channels, userOf } from "../support/history-commands.ts"
import { startNats } from "../support/nats.ts"
import { differencesAt, trimAt, trimNearlyFullAt } from "../support/trimmed.ts"

const log = "BELLCAST_LOG"
const wish = fc.record({
  what: fc.constantFrom("join", "join", "leave", "put", "put", "replace", "delete"),
  user: fc.integer({ min: 20, max: 29 }),
  channel: fc.nat(channels.length - 1),
  subscription: fc.nat(3),
  other: fc.nat(3)
})
type Wish = typeof wish extends fc.Arbitrary<infer A> ? A : never

/** Commands of people; most of them leave again. */
const appendWish = Effect.fnUntraced(function* (
  { channel, other, subscription, user, what }: Wish,
  i: number
) {
  const { append } = yield* EventLog
  const at = 10_000 + i * 10
  const name = `user ${user}`
  const place = subjects.registration(channels[channel]!, userOf(user))
  const body = { user: name, at }
  if (what === "join")
    return yield* append("log", { subject: place, type: "registration.put", body })
  if (what === "leave")
    return yield* append("log", { subject: place, type: "registration.delete", body })
  const subject = subjects.subscription(userOf(user))
  const endpointOf = (n: number) => `https://push.example.com/${user}/${n}`
  const id = endpointHash(endpointOf(subscription))
  if (what === "delete") {
    const removed = [{ id, lastModified: at }]
    return yield* append("log", {
      subject,
      type: "subscription.delete",
      body: { user: name, removed }
    })
  }
  const renewal = other > 1 ? { renewal: "r".repeat(43) } : {}
  const replaces = {
    replaces: { id: endpointHash(endpointOf(other)), lastModified: at, ...renewal }
  }
  const data = {
    endpoint: endpointOf(subscription),
    keys: { auth: "a", p256dh: "p" }
  }
  const put = { user: name, id, data, lastModified: at + 1 }
  return yield* append("log", {
    subject,
    type: "subscription.put",
    body: what === "replace" ? { ...put, ...replaces } : put
  })
})

type Broadcast = "done" | "empty" | "lost" | "scheduled"

/**
 * A server with a past that projector and tally have folded, and its entries as rebuilt. WORK has
 * forgotten these broadcasts, which have finished.
 */
const startWithPast = async (
  seed: number,
  forgotten: ReadonlyArray<Broadcast> = ["done", "lost", "empty"]
) => {
  const nats = await startNats({ syncAlways: false })
  const past = await Effect.runPromise(
    Effect.gen(function* () {
      const past = yield* makeHistory
      const wishes = fc.sample(wish, { numRuns: 250, seed })
      yield* Effect.forEach(wishes, appendWish, { discard: true })
      yield* folded(past.lastWork - 1)
      // The trimmer looks at messages before the last command: final counts may have come after it.
      yield* folded(past.lastWork - 1)
      return past
    }).pipe(Effect.provide(foldingLayer(nats.url)))
  )
  const admin = await administer(nats.url)
  /** Has WORK without these, as after 35 days, and LOG looked at from its beginning. */
  const forget = async (...names: ReadonlyArray<Broadcast>) => {
    for (const name of names)
      for (const filter of [filters.outcomesOf(past[name]), filters.planOf(past[name])])
        await admin.jsm.streams.purge("BELLCAST_WORK", { filter })
    await rebuildAt(nats.url)
  }
  await forget(...forgotten)
  const close = async () => {
    await admin[Symbol.asyncDispose]()
    await nats[Symbol.asyncDispose]()
  }
  return { ...past, url: nats.url, admin, forget, [Symbol.asyncDispose]: close }
}
type Past = Awaited<ReturnType<typeof startWithPast>>

/** A server's messages of LOG, by sequence. */
const messagesOf = async ({ admin: { jsm } }: Past) => {
  const { state } = await jsm.streams.info(log)
  const found = new Map<number, string>()
  for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
    const message = await jsm.streams.getMessage(log, { seq }).catch(() => null)
    if (message !== null) found.set(seq, message.subject)
  }
  return found
}

/** The entries as they must be the same, whatever is old. */
const essences = async ({ admin }: Past) => {
  const beside: Beside = {
    keptFrom: Number.POSITIVE_INFINITY,
    areErased: false,
    historyFrom: Number.POSITIVE_INFINITY,
    historySince: Number.POSITIVE_INFINITY,
    now: Number.POSITIVE_INFINITY,
    expired: new Map()
  }
  const found: Record<string, string> = {}
  for (const [subject, text] of Object.entries(await admin.entries())) {
    const [, name = "", key = ""] = /^\$KV\.bellcast_(\w+)\.(.*)$/.exec(subject) ?? []
    const essence = essenceOf({ bucket: name as BucketName, key }, text, beside)
    if (essence !== undefined) found[subject] = essence
  }
  return found
}

const those = (messages: ReadonlyMap<number, string>, prefix: string): ReadonlyArray<number> =>
  [...messages].flatMap(([seq, subject]) => (subject.startsWith(prefix) ? seq : []))
/** Sequences of the messages that say since when a channel counts. */
const begunIn = (messages: ReadonlyMap<number, string>) => those(messages, "bellcast.cmd.begun.")
/** Sequences of the sums of final counts. */
const sumsIn = (messages: ReadonlyMap<number, string>) => those(messages, "bellcast.evt.summed.")

const hasEnd = (messages: ReadonlyMap<number, string>, broadcast: number): boolean =>
  [...messages.values()].some((subject) =>
    new RegExp(`^bellcast\\.evt\\.finished\\..*\\.${broadcast}$`).test(subject)
  )

const trim = ({ url }: Past, deletedMax?: number) => trimAt(url, deletedMax)

const verified = ({ url }: Past) => differencesAt(url)

/** Deletes messages of LOG by hand. */
const deleteFrom = async ({ admin: { jsm } }: Past, ...sequences: ReadonlyArray<number>) => {
  for (const seq of sequences) await jsm.streams.deleteMessage(log, seq)
}

describe("a log with an end", () => {
  it.each([1, 2, 3])(
    "says the same of the present as the whole log (seed %i)",
    async (seed) => {
      await using past = await startWithPast(seed)
      const [before, all] = [await essences(past), await messagesOf(past)]
      const deleted = await trim(past)
      const left = await messagesOf(past)
      assert.isAbove(deleted, 100)
      assert.isFalse(left.has(past.done), "a finished broadcast")
      assert.isTrue(left.has(past.open), "one that is not")
      for (const broadcast of [past.done, past.lost, past.empty]) {
        assert.isTrue(hasEnd(all, broadcast))
        assert.isFalse(hasEnd(left, broadcast), "final counts")
      }
      assert.isNotEmpty(sumsIn(left))
      const appended = Math.max(...left.keys()) - Math.max(...all.keys())
      assert.equal(left.size, all.size - deleted + appended)
      assert.deepEqual(await essences(past), before)
      assert.deepEqual(await verified(past), [])
      await rebuildAt(past.url)
      assert.deepEqual(await essences(past), before)
      await trim(past)
      assert.deepEqual(await messagesOf(past), left, "nothing else is due")
    },
    180_000
  )

  it("is shorter than the setting says where LOG is nearly full, until there is room", async () => {
    await using past = await startWithPast(7)
    const { jsm } = past.admin
    // The projector deletes messages of drafts that are over first.
    const all = await trimNearlyFullAt(past.url)
    assert.equal(await trimNearlyFullAt(past.url), all, "LOG has room")
    const { config, state } = await jsm.streams.info(log)
    const max_bytes = Math.floor(state.bytes / 0.85)
    await jsm.streams.update(log, { ...config, max_bytes })
    const left = await trimNearlyFullAt(past.url)
    assert.isBelow(left, state.messages)
    const after = (await jsm.streams.info(log)).state.bytes
    assert.isBelow(after, 0.8 * max_bytes)
    assert.deepEqual(await verified(past), [])
    const asked = momentAt(Date.now() - 60_000, 400).pipe(
      Effect.provide(natsLayer({ url: past.url, name: "test" }))
    )
    await expect(Effect.runPromise(asked)).rejects.toThrow(/is before the history/)
    await rebuildAt(past.url)
    await expect(Effect.runPromise(asked)).rejects.toThrow(/is before the history/)
    assert.isAbove(await trim(past), 10, "it ended once there was room")
  }, 120_000)

  it("counts beforehand what goes, of each kind", async () => {
    await using past = await startWithPast(5)
    const counts = await Effect.runPromise(
      countUnneeded(Date.now() + 60_000).pipe(
        Effect.provide(Layer.merge(natsLayer({ url: past.url, name: "test" }), quiet))
      )
    )
    const { broadcasts, registrations, rejections, subscriptions } = counts.going
    for (const { messages } of [broadcasts, registrations, subscriptions])
      assert.isAbove(messages, 0)
    assert.equal(counts.old, (await messagesOf(past)).size)
    const all = [broadcasts, registrations, rejections, subscriptions]
    const sum = all.reduce((total, { messages }) => total + messages, 0)
    // A message that goes may let others go.
    assert.closeTo(await trim(past), sum, 0.05 * sum)
  }, 120_000)

  it("is found to be another one where a needed message was deleted", async () => {
    await using past = await startWithPast(6)
    await trim(past)
    const entries = Object.entries(await past.admin.entries())
    // biome-ignore lint/suspicious/noExplicitAny: any entry
    const valuesOf = (pattern: RegExp, is: (value: any) => boolean) =>
      entries.flatMap(([subject, text]) =>
        pattern.test(subject) && is(JSON.parse(text)) ? [JSON.parse(text)] : []
      )
    const lists = valuesOf(/_subscriptions\.[^=.]{22}$/, (value) => {
      const [first]: Array<{ seq: number }> = Object.values(value.subscriptions)
      return first !== undefined && first.seq < value.seq
    })
    const [subscription]: Array<{ seq: number }> = Object.values(lists[0].subscriptions)
    const left = await messagesOf(past)
    const isWithout = ({ registrations, since }: ChannelRegistrations) =>
      registrations > 0 && !left.has(since)
    assert.isNotEmpty(valuesOf(/_channels\..*\.registrations$/, isWithout))
    const differs = async (what: string) =>
      assert.isNotEmpty(await verified(past), `${what} was deleted`)
    await deleteFrom(past, subscription!.seq)
    await differs("the put that a generation rests on")
    await rebuildAt(past.url)
    assert.isEmpty(await verified(past))
    await deleteFrom(past, ...begunIn(left))
    await differs("what the counts of a channel rest on")
    await rebuildAt(past.url)
    assert.isEmpty(await verified(past))
    await deleteFrom(past, ...sumsIn(left))
    await differs("what the pushes of a channel rest on")
    await rebuildAt(past.url)
    assert.isEmpty(await verified(past))
    await deleteFrom(past, lists.at(-1).seq)
    await differs("the message that the next one expects")
  }, 120_000)

  it("is whole wherever a crash ends the deletion, and goes on from there", async () => {
    await using past = await startWithPast(4)
    const before = await essences(past)
    for (const most of [1, 2, 3, 5, 8, 13, 21]) {
      assert.equal(await trim(past, most), most)
      assert.deepEqual(await verified(past), [])
      await rebuildAt(past.url)
      assert.deepEqual(await essences(past), before, `after ${most} more`)
    }
    assert.isAbove(await trim(past), 10)
    await rebuildAt(past.url)
    assert.deepEqual(await essences(past), before)
  }, 240_000)

  it("is whole wherever a crash ends the deletion of final counts that were summed", async () => {
    await using past = await startWithPast(8, [])
    const before = await essences(past)
    // A message that goes may let others go: afterwards these broadcasts alone are due.
    while ((await trim(past)) > 0) await rebuildAt(past.url)
    assert.isEmpty(sumsIn(await messagesOf(past)))
    await past.forget("done", "lost", "empty", "scheduled")
    const all = await messagesOf(past)
    assert.equal(await trim(past, 0), 0)
    const summed = await messagesOf(past)
    assert.isNotEmpty(sumsIn(summed))
    assert.equal(summed.size, all.size + sumsIn(summed).length, "nothing is deleted")
    assert.deepEqual(await verified(past), [])
    await rebuildAt(past.url)
    assert.deepEqual(await essences(past), before)
    for (const most of [1, 1, 1, 2, 2]) {
      assert.equal(await trim(past, most), most)
      assert.deepEqual(await verified(past), [], "and entries as before")
    }
    await trim(past)
    const left = await messagesOf(past)
    for (const broadcast of [past.done, past.lost, past.empty, past.scheduled])
      assert.isFalse(hasEnd(left, broadcast))
    assert.lengthOf(sumsIn(left), 2, "the last one of each channel")
    await rebuildAt(past.url)
    assert.deepEqual(await essences(past), before)
  }, 240_000)

  it("keeps final counts while WORK has a broadcast that their sum would have", async () => {
    await using past = await startWithPast(8, ["done", "scheduled"])
    const before = await essences(past)
    await trim(past)
    const left = await messagesOf(past)
    assert.isFalse(hasEnd(left, past.done))
    assert.isTrue(left.has(past.scheduled), "the broadcast before it has a plan")
    assert.isTrue(hasEnd(left, past.scheduled))
    assert.deepEqual(await verified(past), [])
    await past.forget("lost")
    await trim(past)
    const later = await messagesOf(past)
    assert.isFalse(later.has(past.scheduled))
    assert.isFalse(hasEnd(later, past.scheduled) || hasEnd(later, past.lost))
    assert.deepEqual(await verified(past), [])
    await rebuildAt(past.url)
    assert.deepEqual(await essences(past), before)
  }, 240_000)

  it("has no sum of a channel that has begun anew", async () => {
    await using past = await startWithPast(8)
    await trim(past)
    const [news, , bell] = channels as [ChannelToken, ChannelToken, ChannelToken]
    const sums = async () =>
      [...(await messagesOf(past)).values()].filter((each) => each.includes(".summed."))
    assert.sameMembers(await sums(), [subjects.summed(news), subjects.summed(bell)])
    const members = Object.entries(await past.admin.entries()).flatMap(([subject, text]) =>
      subject.startsWith(`$KV.bellcast_registrations.${news}.`) && JSON.parse(text).on
        ? (subject.split(".").at(-1) as UserToken)
        : []
    )
    assert.isNotEmpty(members)
    const beginAnew = Effect.gen(function* () {
      const { append } = yield* EventLog
      const body = { user: "user 1", at: 20_000 }
      for (const user of members) {
        const subject = subjects.registration(news, user)
        yield* append("log", { subject, type: "registration.delete", body })
      }
      const subject = subjects.registration(news, userOf(1))
      yield* append("log", { subject, type: "registration.put", body })
      yield* folded(past.lastWork - 1)
    })
    await Effect.runPromise(beginAnew.pipe(Effect.provide(foldingLayer(past.url))))
    assert.deepEqual(await verified(past), [])
    await trim(past)
    assert.sameMembers(await sums(), [subjects.summed(bell)])
    assert.deepEqual(await verified(past), [])
    await rebuildAt(past.url)
    assert.deepEqual(await verified(past), [])
  }, 240_000)
})
