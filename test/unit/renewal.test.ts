// Secrets that renew a subscription: for how long, of which subscriptions, and what voids them.
import { assert, describe, it } from "@effect/vitest"
import type { SubscriptionCommand, SubscriptionPut } from "#domain/subscription/command.ts"
import { markMoved } from "#domain/subscription/owners.ts"
import {
  emptyList,
  evolveList,
  markEnded,
  renewableBy,
  type SubscriptionList
} from "#domain/subscription/subscription.ts"
import { renewableMillisMax, renewables, renewablesMax } from "#domain/subscription/tombstone.ts"
import { undoing } from "#subscriptions/removals.ts"
import { data, del, given, gone, put, struck, suspended } from "#test/subscription-commands.ts"

const hourMillis = 60 * 60_000
const dayMillis = 24 * hourMillis

const longId = "0".repeat(64)

/** What a secret of the subscription `a` proves in a request that stores `b`. */
const provenBy = (
  list: SubscriptionList,
  at: number,
  { secret = "first", given = data("b") } = {}
) => renewableBy(list, secret, "a", { data: given, id: "b" }, at)

const stored = put("a", 100, { renewal: "first" })
const endedAt = 1_000
const ended = given(stored, gone("a", 1, endedAt))
const renewedAt = 2_000
const renewed = given(
  stored,
  put("b", renewedAt, {
    renewal: "second",
    replaces: { id: "a", lastModified: renewedAt - 1, renewal: "first" }
  })
)
const repeated = { generation: 2, data: data("b"), isRepeated: true }

describe("the secret of a subscription that a push service ended", () => {
  it("holds for 30 days", () => {
    const proven = { generation: 1, isRepeated: false }
    assert.deepStrictEqual(provenBy(ended.before, endedAt + 30 * dayMillis - 1), proven)
    assert.isUndefined(provenBy(ended.before, endedAt + 30 * dayMillis))
    const live = provenBy(given(stored).before, 100 * dayMillis)
    assert.deepStrictEqual(live, { generation: 1, data: data("a"), isRepeated: false })
  })

  it("is void once the subscription is removed, which moves no timestamp", () => {
    const list = ended.when(del(["a", endedAt]))
    assert.isUndefined(provenBy(list, endedAt + 1))
    assert.deepStrictEqual(list, { ...ended.before, seq: 3, tombstones: { a: endedAt } })
  })

  it("is that of the subscription which its user stores again, unless that has another one", () => {
    for (const [more, secret] of [
      [{}, "first"],
      [{ data: data("c") }, "first"],
      [{ renewal: "second" }, "second"]
    ] as const) {
      const list = ended.when(put("a", endedAt + 30 * dayMillis - 1, more))
      assert.strictEqual(list.subscriptions["a"]?.renewal, secret)
    }
  })

  it("is not, where it was void before", () => {
    const late = ended.when(put("a", endedAt + 30 * dayMillis))
    assert.isUndefined(late.subscriptions["a"]!.renewal)
    const voided = given(stored, gone("a", 1, endedAt), del(["a", endedAt]))
    assert.isUndefined(voided.when(put("a", endedAt + 1)).subscriptions["a"]!.renewal)
    const taken = evolveList(markEnded(ended.before, "a", 3), put("a", endedAt + 1), 3)
    assert.isUndefined(taken.subscriptions["a"]!.renewal)
  })

  it("is void once another user stores the subscription, which moves no timestamp", () => {
    const list = markEnded(ended.before, "a", 3)
    assert.isUndefined(provenBy(list, endedAt + 1))
    const tombstones = { a: { lastModified: endedAt, isMoved: true, by: 3 } }
    assert.deepStrictEqual(list, { ...ended.before, tombstones } as SubscriptionList)
    assert.strictEqual(markEnded(list, "a", 4), list)
  })

  it("is void when the subscription had moved before, and pushes to it can still be found", () => {
    const afterMove = (...commands: ReadonlyArray<SubscriptionCommand>) => {
      const { before } = given(stored, ...commands)
      return evolveList(markMoved(before, "a", 5), gone("a", 1, endedAt), 6).tombstones
    }
    const tombstone = { lastModified: endedAt, isMoved: true } as const
    assert.deepStrictEqual(afterMove(), { a: { ...tombstone, generation: 1, moved: 5 } })
    // No broadcast was for it any more.
    const judged = [struck("a", 1, 1, 200), struck("a", 1, 2, 300), suspended("a", 1, 400)]
    assert.deepStrictEqual(afterMove(...judged), { a: tombstone })
  })

  it("stays what it is when another one is removed", () => {
    const list = ended.when(del(["b", endedAt]))
    assert.deepStrictEqual(list, { ...ended.before, seq: 3 })
  })

  it("is void beyond the number that one message can name, the oldest first", () => {
    const commands = Array.from({ length: renewablesMax + 2 }, (_, i) => [
      put(`s${i}`, 2 * i + 1, { renewal: `secret ${i}` }),
      gone(`s${i}`, 2 * i + 1, 2 * i + 2)
    ]).flat()
    const { tombstones } = given(...commands).before
    assert.strictEqual(Object.keys(tombstones).length, renewablesMax + 2)
    const left = renewables(tombstones)
    assert.deepStrictEqual(
      left.map(({ id }) => id),
      Array.from({ length: renewablesMax }, (_, i) => `s${i + 2}`)
    )
    assert.deepStrictEqual([tombstones["s0"], tombstones["s1"]], [2, 4])
    const all = { user: "u".repeat(255), removed: left.map((each) => ({ ...each, id: longId })) }
    assert.isBelow(JSON.stringify(all).length, 16 * 1024)
  })
})

describe("a renewal whose response was lost", () => {
  it("is repeated for an hour, for the same endpoint and keys", () => {
    assert.deepStrictEqual(provenBy(renewed.before, renewedAt + hourMillis - 1), repeated)
    assert.isUndefined(provenBy(renewed.before, renewedAt + hourMillis))
    const { endpoint, keys } = data("b")
    for (const other of [data("c"), { endpoint, keys: { ...keys, auth: "AAAA" } }])
      assert.isUndefined(provenBy(renewed.before, renewedAt, { given: other }))
  })

  it("is repeated after a PUT of the same keys, and not for longer", () => {
    const list = renewed.when(put("b", renewedAt + 1_000, { data: { ...data("b"), label: "x" } }))
    const again = provenBy(list, renewedAt + hourMillis - 1)
    assert.deepStrictEqual(again, { ...repeated, data: { ...data("b"), label: "x" } })
    assert.isUndefined(provenBy(list, renewedAt + hourMillis))
  })

  it("is not repeated after a PUT of other keys, or with a secret of its own", () => {
    const keys = { auth: "AAAA", p256dh: "p" }
    for (const other of [
      put("b", renewedAt + 1, { data: { ...data("b"), keys } }),
      put("b", renewedAt + 1, { renewal: "third" })
    ])
      assert.isUndefined(provenBy(renewed.when(other), renewedAt + 2))
  })

  it("is not repeated once the new secret was used", () => {
    const replaces = { id: "b", lastModified: renewedAt + 1, renewal: "second" }
    const list = renewed.when(put("c", renewedAt + 2, { renewal: "third", replaces }))
    assert.isUndefined(provenBy(list, renewedAt + 3))
  })
})

describe("a restored subscription", () => {
  const quota = { subscriptionsPerUserMax: 50, subscriptionsPerUserPerHostMax: 50 }
  const removal = {
    id: "a",
    generation: 1,
    cause: "gone",
    put: stored as unknown as SubscriptionPut
  }
  const restored = (list: SubscriptionList, now = 3_000) => {
    const message = undoing(removal, list, now, quota)
    if (message?.type !== "subscription.put") return assert.fail("restored by a put")
    return evolveList(list, { type: message.type, ...message.body }, list.seq + 1)
  }

  it("is renewed by the secret that its browser has", () => {
    const list = restored(ended.before)
    assert.deepStrictEqual(list.subscriptions["a"]?.data, data("a"))
    assert.isFalse(provenBy(list, 4_000)?.isRepeated)
  })

  it("is not renewed by a secret that was void before", () => {
    const list = restored(ended.when(del(["a", endedAt])))
    assert.strictEqual(list.subscriptions["a"]?.seq, 4)
    assert.isUndefined(provenBy(list, 4_000))
    assert.deepStrictEqual(restored(emptyList).subscriptions["a"]?.seq, 1)
    const late = endedAt + renewableMillisMax
    assert.isUndefined(provenBy(restored(ended.before, late), late + 1))
  })
})
