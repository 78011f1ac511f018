// The list of a user's subscriptions: what each command does, and what holds for every order of them.
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import {
  emptyList,
  evolveList,
  nextTimestamp,
  type SubscriptionCommand,
  type SubscriptionList,
  tombstonesMax
} from "#domain/subscription.ts"
import { givens } from "#test/given.ts"

const given = givens(evolveList, emptyList)

const data = (name: string) => ({ endpoint: `https://push.example.com/${name}`, keys: { auth: "a", p256dh: "p" } })
const put = (id: string, lastModified: number, more: { readonly vapidKey?: string; readonly name?: string } = {}): SubscriptionCommand => {
  const { name = id, ...rest } = more
  return { type: "subscription.put/1", user: "u", id, data: data(name), lastModified, ...rest }
}
const del = (...removed: ReadonlyArray<readonly [id: string, lastModified: number]>): SubscriptionCommand => ({
  type: "subscription.delete/1",
  user: "u",
  removed: removed.map(([id, lastModified]) => ({ id, lastModified }))
})
const gone = (id: string, generation: number, at: number): SubscriptionCommand => ({
  type: "subscription.gone/1",
  id,
  generation,
  broadcast: 1,
  status: 410,
  at
})

describe("a subscription that is put", () => {
  it("is stored with the sequence and the timestamp of its command", () => {
    assert.deepStrictEqual(given().when(put("a", 100, { vapidKey: "k" })), {
      v: 1,
      seq: 1,
      lastModified: 100,
      subscriptions: { a: { data: data("a"), vapidKey: "k", seq: 1, lastModified: 100 } },
      tombstones: {}
    })
  })

  it("replaces the one of the same id, and the key it was made with", () => {
    const list = given(put("a", 100, { vapidKey: "k" }), put("b", 101)).when(put("a", 102, { name: "new" }))
    assert.deepStrictEqual(list.subscriptions["a"], { data: data("new"), seq: 3, lastModified: 102 })
    assert.deepStrictEqual(list.subscriptions["b"], { data: data("b"), seq: 2, lastModified: 101 })
    assert.strictEqual(list.lastModified, 102)
  })

  it("takes the place of its tombstone", () => {
    const list = given(put("a", 100), del(["a", 101])).when(put("a", 102))
    assert.deepStrictEqual(list.tombstones, {})
    assert.strictEqual(list.subscriptions["a"]?.seq, 3)
  })
})

describe("a deletion", () => {
  it("leaves a tombstone with a timestamp of its own for each subscription it names", () => {
    const list = given(put("a", 100), put("b", 101), put("c", 102)).when(del(["a", 103], ["c", 104]))
    assert.deepStrictEqual(list.tombstones, { a: 103, c: 104 })
    assert.deepStrictEqual(Object.keys(list.subscriptions), ["b"])
    assert.strictEqual(list.lastModified, 104)
    assert.strictEqual(list.seq, 4)
  })

  it("of what is not there leaves no tombstone and moves no timestamp", () => {
    const list = given(put("a", 100)).when(del(["b", 200]))
    assert.deepStrictEqual(list, { ...given(put("a", 100)).before, seq: 2 })
  })
})

describe("a push service that calls a subscription gone", () => {
  it("removes the generation it answered for, with a new timestamp", () => {
    const list = given(put("a", 100)).when(gone("a", 1, 90))
    assert.deepStrictEqual(list.subscriptions, {})
    assert.deepStrictEqual(list.tombstones, { a: 101 })
    assert.strictEqual(list.lastModified, 101)
  })

  it("does not remove a subscription that was put since", () => {
    const list = given(put("a", 100), put("a", 200, { name: "new" })).when(gone("a", 1, 300))
    assert.deepStrictEqual(list, { ...given(put("a", 100), put("a", 200, { name: "new" })).before, seq: 3 })
  })

  it("does not remove what its user has removed already", () => {
    const list = given(put("a", 100), del(["a", 101])).when(gone("a", 1, 300))
    assert.deepStrictEqual(list.tombstones, { a: 101 })
    assert.strictEqual(list.lastModified, 101)
  })
})

describe("tombstones", () => {
  it("are forgotten, the oldest first, beyond the number that fits into a list", () => {
    const commands = Array.from({ length: tombstonesMax + 2 }, (_, i) => [put(`s${i}`, 2 * i + 1), del([`s${i}`, 2 * i + 2])]).flat()
    const { tombstones } = given(...commands).before
    assert.strictEqual(Object.keys(tombstones).length, tombstonesMax)
    assert.isUndefined(tombstones["s1"])
    assert.strictEqual(tombstones["s2"], 6)
    assert.strictEqual(tombstones[`s${tombstonesMax + 1}`], 2 * tombstonesMax + 4)
  })
})

/** What clients and push services want, in some order; the timestamps are given by the list as the gateway does. */
const wish = fc.record({
  what: fc.constantFrom("put", "put", "put", "delete", "deleteAll", "gone"),
  id: fc.constantFrom("a", "b", "c"),
  // A clock that stands still and runs backwards.
  now: fc.integer({ min: 0, max: 50 }),
  /** How many puts back a `gone` names. */
  back: fc.nat(3),
  skipped: fc.nat(4)
})
type Wish = typeof wish extends fc.Arbitrary<infer A> ? A : never

interface Step {
  readonly command: SubscriptionCommand
  readonly seq: number
  readonly before: SubscriptionList
  readonly after: SubscriptionList
}

const run = (wishes: ReadonlyArray<Wish>): ReadonlyArray<Step> => {
  let list = emptyList
  let seq = 0
  const puts: Array<{ readonly id: string; readonly seq: number }> = []
  return wishes.map(({ back, id, now, skipped, what }) => {
    // Other users' commands lie in between.
    seq += 1 + skipped
    const next = nextTimestamp(list, now)
    const generation = puts.filter((each) => each.id === id).at(-1 - back)?.seq ?? 0
    const ids = what === "deleteAll" ? ["a", "b", "c"] : [id]
    const command =
      what === "put"
        ? put(id, next)
        : what === "gone"
          ? gone(id, generation, now)
          : del(...ids.map((each, i): readonly [string, number] => [each, next + i]))
    if (what === "put") puts.push({ id, seq })
    const before = list
    list = evolveList(list, command, seq)
    return { command, seq, before, after: list }
  })
}

const history = fc.array(wish, { maxLength: 40 }).map(run)
const fold = (list: SubscriptionList, steps: ReadonlyArray<Step>) =>
  steps.reduce((state, { command, seq }) => evolveList(state, command, seq), list)
const stamps = (list: SubscriptionList) => [
  ...Object.values(list.subscriptions).map(({ lastModified }) => lastModified),
  ...Object.values(list.tombstones)
]

describe("any order of put, delete and gone", () => {
  it("gives the same list however much of it is delivered again, and wherever in it that happens", () => {
    fc.assert(
      fc.property(history, fc.nat(40), fc.nat(40), fc.nat(40), (steps, a, b, c) => {
        const [from = 0, to = 0, end = 0] = [a, b, c].map((each) => Math.min(each, steps.length)).sort((x, y) => x - y)
        const last = fold(emptyList, steps)
        assert.deepStrictEqual(fold(last, steps.slice(from, to)), last)
        const again = fold(fold(emptyList, steps.slice(0, to)), steps.slice(from, end))
        assert.deepStrictEqual(fold(again, steps.slice(to)), last)
      })
    )
  })

  it("changes nothing in the list it began with", () => {
    fc.assert(
      fc.property(history, (steps) => {
        for (const { after, before, command, seq } of steps)
          assert.deepStrictEqual(evolveList(structuredClone(before), command, seq), after)
      })
    )
  })

  it("gives each change a timestamp above all earlier ones of the user, whatever the clock says", () => {
    fc.assert(
      fc.property(history, (steps) => {
        for (const { after, before } of steps) {
          const highest = Math.max(0, ...stamps(before))
          assert.isAtLeast(before.lastModified, highest)
          const fresh = stamps(after).filter((stamp) => !stamps(before).includes(stamp))
          for (const stamp of fresh) assert.isAbove(stamp, before.lastModified)
          assert.strictEqual(after.lastModified, fresh.length === 0 ? before.lastModified : Math.max(...fresh))
          assert.strictEqual(new Set(stamps(after)).size, stamps(after).length)
        }
      })
    )
  })

  it("never shows a subscription and its tombstone at once", () => {
    fc.assert(
      fc.property(history, (steps) => {
        for (const { after } of steps) for (const id of Object.keys(after.tombstones)) assert.isUndefined(after.subscriptions[id])
      })
    )
  })

  it("lets a gone remove exactly the generation it names", () => {
    fc.assert(
      fc.property(history, (steps) => {
        for (const { after, before, command } of steps) {
          if (command.type !== "subscription.gone/1") continue
          const { [command.id]: target, ...others } = before.subscriptions
          const expected = target === undefined || target.seq === command.generation ? others : before.subscriptions
          assert.deepStrictEqual(after.subscriptions, expected)
        }
      })
    )
  })
})
