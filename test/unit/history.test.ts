// Messages that may go from LOG: after each deletion the fold is the same, but for tombstones from
// before the history, and so is every fold of what comes later.
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import {
  type ChannelRests,
  type Past,
  unneededOfBroadcast,
  unneededOfRegistration,
  unneededOfUser
} from "#domain/history.ts"
import type { Message } from "#domain/messages/table.ts"
import {
  type ChannelRegistrations,
  emptyChannel,
  evolveChannel,
  evolveRegistration,
  type Registration,
  type RegistrationCommand,
  withBegin
} from "#domain/registration.ts"
import type { SubscriptionCommand } from "#domain/subscription/command.ts"
import { emptyList, evolveList, type SubscriptionList } from "#domain/subscription/subscription.ts"
import { removedAt } from "#domain/subscription/tombstone.ts"

const past = (seq: number, message: Message): Past => ({ seq, at: seq * 1_000, message })
const none: ReadonlySet<number> = new Set()
const idOf = (n: number) => String(n).repeat(64)

const put = (seq: number, n: number, more: object = {}) =>
  past(seq, {
    type: "subscription.put",
    user: "anna",
    id: idOf(n),
    data: { endpoint: `https://push.example.com/${n}`, keys: { auth: "a", p256dh: "p" } },
    lastModified: seq * 1_000,
    ...more
  })
const remove = (seq: number, n: number) =>
  past(seq, {
    type: "subscription.delete",
    user: "anna",
    removed: [{ id: idOf(n), lastModified: seq * 1_000 }]
  })
const gone = (seq: number, n: number, generation: number) =>
  past(seq, {
    type: "subscription.gone",
    ...{ id: idOf(n), generation, broadcast: 1, status: 410, cause: "gone", at: seq * 1_000 }
  })

const foldList = (messages: ReadonlyArray<Past>, list = emptyList) =>
  messages.reduce(
    (acc, { message, seq }) => evolveList(acc, message as SubscriptionCommand, seq),
    list
  )
const sequencesOf = (messages: ReadonlyArray<Past>, before: number) =>
  unneededOfUser({ messages, rejected: none, before }).seqs

/** The subscriptions after a message, as the question about a moment has them. */
const subscriptionsAt = (messages: ReadonlyArray<Past>, seq: number) =>
  JSON.stringify(foldList(messages.filter((each) => each.seq <= seq)).subscriptions)

/** A list without tombstones from before a time, as the text that a bucket has. */
const textOf = ({ tombstones, ...list }: SubscriptionList, before: number) =>
  JSON.stringify({
    ...list,
    tombstones: Object.entries(tombstones).filter(([, each]) => removedAt(each) >= before)
  })

describe("the subscriptions of a user", () => {
  it("keep the put that a generation rests on, and the last message", () => {
    const messages = [put(1, 1), put(2, 1), put(3, 1)]
    assert.deepEqual(sequencesOf(messages, 9_000), [2])
  })

  it("keep what a live tombstone rests on", () => {
    const messages = [put(1, 1), put(2, 2), remove(8, 1)]
    assert.deepEqual(sequencesOf(messages, 5_000), [])
    assert.deepEqual(sequencesOf([...messages, put(12, 3)], 9_000), [1, 8])
  })

  it("keep the message that a secret came with", () => {
    const messages = [put(1, 1, { renewal: "secret" }), put(2, 1, { data: put(2, 9).message })]
    assert.deepEqual(sequencesOf([messages[0]!, put(2, 1)], 9_000), [])
  })

  it("are gone altogether once nothing of them is left", () => {
    const messages = [put(1, 1), put(2, 1), gone(3, 1, 1)]
    const { forgotten, seqs } = unneededOfUser({ messages, rejected: none, before: 9_000 })
    assert.sameMembers([...seqs], [1, 2, 3])
    assert.deepEqual(forgotten, [idOf(1)])
    // Message 2 alone would be another generation, which message 3 does not end.
    assert.notDeepEqual(seqs.slice(0, 1), [1])
  })

  it("are gone altogether, however many messages there were", () => {
    const puts = Array.from({ length: 2_000 }, (_, i) => put(i + 1, i % 3))
    const messages = [...puts, ...[0, 1, 2].map((n) => remove(2_001 + n, n))]
    const seqs = sequencesOf(messages, 3_000_000)
    assert.lengthOf(new Set(seqs), 2_003)
    assert.deepEqual(seqs.slice(-3), [2_001, 2_002, 2_003])
  })

  it("stay where a message is not old", () => {
    assert.deepEqual(sequencesOf([put(1, 1), remove(9, 1)], 9_000), [])
  })

  it("lose a rejected command", () => {
    const messages = [put(1, 1), put(2, 2), put(3, 1)]
    const { seqs } = unneededOfUser({ messages, rejected: new Set([2]), before: 9_000 })
    assert.deepEqual(seqs, [2])
  })
})

const step = fc.record({
  what: fc.constantFrom("put", "put", "put", "move", "delete", "gone", "struck", "cleared", "key"),
  n: fc.nat(3),
  other: fc.nat(3),
  generation: fc.nat(20),
  more: fc.constantFrom({}, {}, { vapidKey: "k" }, { renewal: "r" }),
  late: fc.nat(2_500)
})
type Step = typeof step extends fc.Arbitrary<infer A> ? A : never

const messageOf = ({ generation, late, more, n, other, what }: Step, seq: number): Past => {
  const named = { id: idOf(n), generation, at: seq * 1_000 }
  const evidence = { ...named, broadcast: 1, cause: "unknown-host", worker: "w" } as const
  switch (what) {
    case "put":
      return put(seq, n, { ...more, lastModified: seq * 1_000 + late })
    case "move":
      return put(seq, n, {
        ...more,
        replaces: { id: idOf(other), lastModified: seq * 1_000 + late }
      })
    case "delete":
      return remove(seq, n)
    case "gone":
      return gone(seq, n, generation)
    case "struck":
      return past(seq, { type: "subscription.struck", ...evidence, strike: 1 + (generation % 2) })
    case "cleared":
      return past(seq, { type: "subscription.cleared", ...named, by: "push" })
    default:
      return past(seq, { type: "subscription.matched", ...named, vapidKey: `k${generation}` })
  }
}

const history = fc
  .array(step, { minLength: 1, maxLength: 24 })
  .map((steps) => steps.map((each, i) => messageOf(each, i + 1)))

describe("any history of a user", () => {
  it("folds the same after each deletion, and so does what follows", () => {
    let deleted = 0
    fc.assert(
      fc.property(history, fc.nat(26), fc.nat(24), (all, cut, now) => {
        // Messages behind `now` are not there yet when the others are deleted.
        const messages = all.slice(0, Math.max(1, now))
        const later = all.slice(messages.length)
        const before = cut * 1_000
        const whole = foldList(messages)
        let left = messages
        for (const seq of sequencesOf(messages, before)) {
          deleted++
          assert.isBelow(left.find((each) => each.seq === seq)!.at, before)
          left = left.filter((each) => each.seq !== seq)
          const list = foldList(left)
          const isNothing = Object.keys(list.subscriptions).length === 0
          if (Object.keys(whole.subscriptions).length > 0 || !isNothing)
            assert.equal(textOf(list, before), textOf(whole, before))
        }
        const [one, other] = [whole, foldList(left)].map((list) => foldList(later, list))
        if (left.length > 0) assert.equal(textOf(other!, before), textOf(one!, before))
        for (const { seq } of messages.filter(({ at }) => at >= before))
          assert.equal(subscriptionsAt(left, seq), subscriptionsAt(messages, seq))
        const begin = messages.filter(({ at }) => at < before).at(-1)?.seq ?? 0
        assert.equal(subscriptionsAt(left, begin), subscriptionsAt(messages, begin))
      }),
      { numRuns: 3_000, seed: 5 }
    )
    assert.isAbove(deleted, 3_000)
  })
})

describe("any history that leaves nothing", () => {
  it("leaves nothing after each deletion, until all is deleted", () => {
    fc.assert(
      fc.property(history, (begun) => {
        const ends = [0, 1, 2, 3].map((n) => remove(begun.length + 1 + n, n))
        let left: ReadonlyArray<Past> = [...begun, ...ends]
        for (const seq of sequencesOf(left, 100_000)) {
          left = left.filter((each) => each.seq !== seq)
          assert.deepEqual(foldList(left).subscriptions, {})
        }
        assert.deepEqual(left, [])
      }),
      { numRuns: 5_000, seed: 5 }
    )
  })
})

interface Joined {
  readonly user: string
  readonly on: boolean
  readonly millis: number
}

interface OfChannel extends Past {
  /** Empty: `channel.begun`. */
  readonly user: string
}

const foldChannel = (log: ReadonlyArray<OfChannel>) => {
  const registrations = new Map<string, Registration>()
  let channel: ChannelRegistrations = emptyChannel
  for (const { message, seq, user } of log) {
    if (message.type === "channel.begun") {
      channel = withBegin(channel, message)
      continue
    }
    const command = message as RegistrationCommand
    const next = evolveRegistration(registrations.get(user), command, seq)
    registrations.set(user, next)
    channel = evolveChannel(channel, next, command, seq)
  }
  return { channel, registrations }
}

/** The messages that the counts rest on, as the buckets say. */
const restsOf = ({ registrations, seq, since }: ChannelRegistrations): ChannelRests =>
  registrations === 0 ? { since: Number.POSITIVE_INFINITY, changed: 0 } : { since, changed: seq }

const shown = (log: ReadonlyArray<OfChannel>) => {
  const { channel, registrations } = foldChannel(log)
  const on = [...registrations].filter(([, each]) => each.on).sort()
  // Without a registration a channel has no entry.
  return JSON.stringify([on, channel.registrations === 0 ? undefined : channel])
}

const membersAt = (log: ReadonlyArray<OfChannel>, seq: number) => {
  const { registrations } = foldChannel(log.filter((each) => each.seq <= seq))
  const members = [...registrations].filter(([, { on }]) => on)
  return members
    .map(([user, { since }]) => `${user} ${since}`)
    .sort()
    .join()
}

describe("any history of a channel", () => {
  it("has the same registrations and counts after each deletion", () => {
    let deleted = 0
    let counted = 0
    const joined = fc.record({
      user: fc.constantFrom("a", "b", "c", "d", "e"),
      on: fc.boolean(),
      millis: fc.constantFrom(0, 5, 2_000)
    })
    const check = (steps: ReadonlyArray<Joined>, cut: number, now: number) => {
      let at = 1
      const commands = steps.map(({ millis, on, user }, i): OfChannel => {
        at += millis
        const type = on ? "registration.put" : "registration.delete"
        // Between the two parts there is room for `channel.begun`.
        return { ...past(i < now ? i + 1 : i + 2, { type, user, at } as Message), user }
      })
      const before = cut * 1_000
      let log: ReadonlyArray<OfChannel> = commands.slice(0, now)
      const later = commands.slice(now)
      const { channel } = foldChannel(log)
      const all = [...log, ...later]
      const [whole, wholeLater] = [shown(log), shown(all)]
      const begun = { lastModified: channel.lastModified, since: channel.since, upTo: channel.seq }
      const kept = { ...past(log.length + 1, { type: "channel.begun", ...begun }), user: "" }
      if (channel.registrations > 0) log = [...log, kept]
      for (const user of ["a", "b", "c", "d", "e"]) {
        const messages = log.filter((each) => each.user === user)
        const rests = { messages, rejected: none, before, channel: restsOf(channel) }
        const { countedUpTo, seqs } = unneededOfRegistration(rests)
        assert.isAtMost(countedUpTo, channel.registrations > 0 ? channel.seq : 0)
        if (countedUpTo > 0) counted++
        for (const seq of seqs) {
          deleted++
          log = log.filter((each) => each.seq !== seq)
          assert.equal(shown(log), whole)
          assert.equal(shown([...log, ...later]), wholeLater)
        }
      }
      // At each moment of the history.
      for (let seq = cut; seq <= all.length; seq++)
        assert.equal(membersAt([...log, ...later], seq), membersAt(all, seq))
    }
    const histories = fc.property(
      fc.array(joined, { maxLength: 40 }),
      fc.nat(42),
      fc.nat(40),
      check
    )
    fc.assert(histories, { numRuns: 3_000, seed: 5 })
    assert.isAbove(counted, 200)
    assert.isAbove(deleted, 3_000)
  })
})

describe("a registration", () => {
  const join = (seq: number) =>
    past(seq, { type: "registration.put", user: "anna", at: seq * 1_000 })
  const leave = (seq: number) =>
    past(seq, { type: "registration.delete", user: "anna", at: seq * 1_000 })
  const of = (messages: ReadonlyArray<Past>, more: Partial<ChannelRests> = {}) =>
    unneededOfRegistration({
      messages,
      rejected: none,
      before: 80_000,
      channel: { since: 1, changed: 90, ...more }
    })

  it("that stands keeps its put and its last message", () => {
    const { countedUpTo, seqs } = of([join(2), leave(3), join(4), join(5), join(6)])
    assert.deepEqual([seqs, countedUpTo], [[5, 2, 3], 3])
  })

  it("that ended goes, once a message says what counts rested on it, and never as the last", () => {
    const ended = [join(2), leave(3)]
    assert.deepEqual(of(ended), { seqs: [2, 3], countedUpTo: 3 })
    assert.deepEqual(of(ended, { changed: 3 }), { seqs: [], countedUpTo: 0 }, "the last change")
    assert.deepEqual(of(ended, { since: 4 }), { seqs: [2, 3], countedUpTo: 0 }, "an earlier begin")
  })

  it("that ended lately keeps its put, too", () => {
    assert.deepEqual(of([join(2), leave(81)]).seqs, [])
  })
})

describe("a broadcast", () => {
  const state = past(4, {
    type: "broadcast.cancelled",
    ...{ broadcast: 3, channel: "news", run: 0, by: "anna", at: 4 }
  })
  const part = past(2, { type: "direct.part" })
  const origin = past(3, { type: "direct", parts: [2] })
  const end = past(9, {
    type: "broadcast.rejected",
    ...{ broadcast: 3, subject: "", reason: "", at: 9 }
  })
  const of = (before: number) =>
    unneededOfBroadcast({ origin, parts: [part], changes: [state], end, before })

  it("goes as a whole: before its parts, and with its end last", () => {
    assert.deepEqual(of(10_000), [3, 2, 4, 9])
  })

  it("stays as a whole while its end is not old", () => {
    assert.deepEqual(of(9_000), [])
  })
})
