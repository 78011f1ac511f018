// Messages that may go from LOG: after each deletion the fold is the same, but for tombstones from
// before the history, and so is every fold of what comes later.
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import type { Past } from "#domain/history.ts"
import { foldListOf, unneededOfUser } from "#domain/list-history.ts"
import type { Message } from "#domain/messages/table.ts"
import type { Marks, SubscriptionCommand } from "#domain/subscription/command.ts"
import { markMoved, marksBy, withMarks } from "#domain/subscription/owners.ts"
import {
  emptyList,
  evolveList,
  markEnded,
  type SubscriptionList
} from "#domain/subscription/subscription.ts"
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

  it("need nothing from before a renewal once it is old, nor before a restored one", () => {
    const renewal = (seq: number, n: number) =>
      put(seq, n, {
        replaces: { id: idOf(n - 1), lastModified: seq * 1_000, renewal: "r".repeat(43) }
      })
    assert.deepEqual(sequencesOf([put(1, 1), renewal(2, 2), renewal(3, 3)], 9_000), [1, 2])
    const restored = put(3, 1, { restored: true })
    assert.deepEqual(sequencesOf([put(1, 1), gone(2, 1, 1), restored], 9_000), [1, 2])
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

/** The same messages, with ten days from one to the next instead of a second. */
const inDays = (messages: ReadonlyArray<Past>): ReadonlyArray<Past> =>
  JSON.parse(JSON.stringify(messages), (key, value) =>
    key === "at" || key === "lastModified" ? value * 864_000 : value
  )
const tenDays = 864_000_000
const foldOwn = (messages: ReadonlyArray<Past>) =>
  messages.reduce(foldListOf({ rejected: none }), emptyList)

describe("any history of which only a part is read", () => {
  it("folds the same after each deletion, whatever follows", () => {
    let deleted = 0
    fc.assert(
      fc.property(history, fc.nat(26), fc.integer({ min: 2, max: 24 }), (steps, cut, read) => {
        const all = inDays(steps)
        const isPut = ({ message }: Past) => message.type === "subscription.put"
        const messages = all.slice(0, all.slice(0, read).findLastIndex(isPut) + 1)
        if (messages.length === 0) return
        const before = cut * tenDays
        let left = all
        const past = { messages, rejected: none, before, isPart: true }
        for (const seq of unneededOfUser(past).seqs) {
          deleted++
          left = left.filter((each) => each.seq !== seq)
          assert.equal(textOf(foldOwn(left), before), textOf(foldOwn(all), before))
        }
        for (const { seq } of all.filter(({ at }) => at >= before))
          assert.equal(
            JSON.stringify(foldOwn(left.filter((each) => each.seq <= seq)).subscriptions),
            JSON.stringify(foldOwn(all.filter((each) => each.seq <= seq)).subscriptions)
          )
      }),
      { numRuns: 3_000, seed: 5 }
    )
    assert.isAbove(deleted, 3_000)
  })
})

describe("a long history of a user", () => {
  const long = fc
    .array(step, { minLength: 400, maxLength: 400 })
    .map((steps) => inDays(steps.map((each, i) => messageOf(each, i + 1))))

  it("folds the same after each deletion, until no more goes", () => {
    for (const all of fc.sample(long, { numRuns: 10, seed: 5 })) {
      const before = 380 * tenDays
      const whole = textOf(foldOwn(all), before)
      let left = all
      for (let isMore = true; isMore; ) {
        const found = unneededOfUser({ messages: left, rejected: none, before })
        for (const [i, seq] of found.seqs.entries()) {
          left = left.filter((each) => each.seq !== seq)
          if (i % 10 === 0) assert.equal(textOf(foldOwn(left), before), whole)
        }
        assert.equal(textOf(foldOwn(left), before), whole)
        isMore = found.isMore
      }
      assert.isBelow(left.length, 60)
      assert.isEmpty(unneededOfUser({ messages: left, rejected: none, before }).seqs)
    }
  })
})

describe("what another user had meanwhile", () => {
  it("is told by the facts about the messages that follow", () => {
    let told = 0
    const taken = fc.array(fc.record({ n: fc.nat(3), after: fc.nat(12) }), { maxLength: 12 })
    fc.assert(
      fc.property(history, taken, (messages, takes) => {
        const marks = new Map<number, Marks>()
        let list = emptyList
        let own = emptyList
        for (const { message, seq } of messages) {
          const command = message as SubscriptionCommand
          const next = evolveList(list, command, seq)
          const found = marksBy(list, command, next)
          if (found.length > 0) marks.set(seq, found)
          told += found.length
          list = next
          own = evolveList(withMarks(own, marks.get(seq)), command, seq)
          assert.equal(subscriptionsOf(own), subscriptionsOf(list))
          // Puts of another user come after this message.
          for (const { n } of takes.filter(({ after }) => after === seq))
            if (list.subscriptions[idOf(n)] === undefined)
              list = markEnded(list, idOf(n), seq + 0.5)
            else if (list.subscriptions[idOf(n)]!.moved === undefined)
              list = markMoved(list, idOf(n), seq + 0.5)
        }
      }),
      { numRuns: 3_000, seed: 5 }
    )
    assert.isAbove(told, 500)
  })

  /** Without the marks of other users. */
  const subscriptionsOf = ({ lastModified, subscriptions }: SubscriptionList) =>
    JSON.stringify([lastModified, subscriptions], (key, value) =>
      key === "moved" ? undefined : value
    )
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
