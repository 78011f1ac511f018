// A user's list of subscriptions: what each command does, and properties that hold in every order
// of commands.
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { decodeMessage } from "#domain/messages.ts"
import {
  causeOf,
  emptyList,
  evolveList,
  nextTimestamp,
  type SubscriptionCommand,
  type SubscriptionList,
  tombstonesMax
} from "#domain/subscription.ts"
import { givens } from "#test/given.ts"

const given = givens(evolveList, emptyList)

const data = (name: string) => ({
  endpoint: `https://push.example.com/${name}`,
  keys: { auth: "a", p256dh: "p" }
})
const put = (
  id: string,
  lastModified: number,
  more: { readonly vapidKey?: string; readonly name?: string } = {}
): SubscriptionCommand => {
  const { name = id, ...rest } = more
  return { type: "subscription.put/1", user: "u", id, data: data(name), lastModified, ...rest }
}
const del = (
  ...removed: ReadonlyArray<readonly [id: string, lastModified: number]>
): SubscriptionCommand => ({
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

const matched = (id: string, generation: number, vapidKey: string): SubscriptionCommand => ({
  type: "subscription.matched/1",
  id,
  generation,
  vapidKey,
  at: 1
})

describe("a subscription that turns out to be made with another key", () => {
  it("is noted with that key, and is otherwise what it was to its user", () => {
    const before = given(put("a", 100, { vapidKey: "k" }), put("b", 101, { vapidKey: "k" }))
    const list = before.when(matched("a", 1, "l"))
    assert.deepStrictEqual(list, {
      v: 1,
      seq: 3,
      lastModified: 101,
      subscriptions: {
        a: { data: data("a"), vapidKey: "l", seq: 1, lastModified: 100 },
        b: { data: data("b"), vapidKey: "k", seq: 2, lastModified: 101 }
      },
      tombstones: {}
    })
  })

  it("is left alone when it was replaced or removed since", () => {
    assert.strictEqual(
      given(put("a", 100), put("a", 101, { vapidKey: "k" })).when(matched("a", 1, "l"))
        .subscriptions["a"]?.vapidKey,
      "k"
    )
    assert.deepStrictEqual(
      given(put("a", 100), del(["a", 101])).when(matched("a", 1, "l")).subscriptions,
      {}
    )
  })
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
    const list = given(put("a", 100, { vapidKey: "k" }), put("b", 101)).when(
      put("a", 102, { name: "new" })
    )
    assert.deepStrictEqual(list.subscriptions["a"], {
      data: data("new"),
      seq: 3,
      lastModified: 102
    })
    assert.deepStrictEqual(list.subscriptions["b"], { data: data("b"), seq: 2, lastModified: 101 })
    assert.strictEqual(list.lastModified, 102)
  })

  it("takes the place of its tombstone", () => {
    const list = given(put("a", 100), del(["a", 101])).when(put("a", 102))
    assert.deepStrictEqual(list.tombstones, {})
    assert.strictEqual(list.subscriptions["a"]?.seq, 3)
  })
})

describe("a subscription that is called what every object has", () => {
  for (const id of ["constructor", "__proto__", "toString"]) {
    it(`${id}: is stored and removed like any other, and is not there before`, () => {
      const stored = given(put(id, 100))
      assert.deepStrictEqual(Object.entries(stored.before.subscriptions), [
        [id, { data: data(id), seq: 1, lastModified: 100 }]
      ])
      const removed = stored.when(del([id, 101]))
      assert.deepStrictEqual(
        [Object.entries(removed.subscriptions), Object.entries(removed.tombstones)],
        [[], [[id, 101]]]
      )
      assert.deepStrictEqual(Object.entries(given().when(del([id, 100])).tombstones), [])
    })
  }
})

describe("a deletion", () => {
  it("leaves a tombstone with a timestamp of its own for each subscription it names", () => {
    const list = given(put("a", 100), put("b", 101), put("c", 102)).when(
      del(["a", 103], ["c", 104])
    )
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
    assert.deepStrictEqual(list, {
      ...given(put("a", 100), put("a", 200, { name: "new" })).before,
      seq: 3
    })
  })

  it("does not remove what its user has removed already", () => {
    const list = given(put("a", 100), del(["a", 101])).when(gone("a", 1, 300))
    assert.deepStrictEqual(list.tombstones, { a: 101 })
    assert.strictEqual(list.lastModified, 101)
  })
})

const of = (id: string, generation: number) => ({
  id,
  generation,
  broadcast: 1,
  cause: "unknown-host" as const,
  worker: "w"
})
const struck = (
  id: string,
  generation: number,
  strike: number,
  at: number
): SubscriptionCommand => ({
  type: "subscription.struck/1",
  ...of(id, generation),
  strike,
  at
})
const suspended = (id: string, generation: number, at: number): SubscriptionCommand => ({
  type: "subscription.suspended/1",
  ...of(id, generation),
  at
})
const cleared = (id: string, generation: number, at = 500): SubscriptionCommand => ({
  type: "subscription.cleared/1",
  id,
  generation,
  by: "push",
  at
})

describe("what is held against a subscription", () => {
  const before = given(put("a", 100), put("b", 101))

  it("is counted, strike after strike, and changes nothing that a client sees", () => {
    const once = before.when(struck("a", 1, 1, 300))
    assert.deepStrictEqual(once.subscriptions["a"]?.strikes, {
      count: 1,
      cause: "unknown-host" as const,
      firstAt: 300,
      lastAt: 300
    })
    const twice = evolveList(once, struck("a", 1, 2, 400), 4)
    assert.deepStrictEqual(twice.subscriptions["a"], {
      ...{ data: data("a"), seq: 1, lastModified: 100 },
      strikes: { count: 2, cause: "unknown-host", firstAt: 300, lastAt: 400 }
    })
    assert.deepStrictEqual(twice.subscriptions["b"], before.before.subscriptions["b"])
    assert.strictEqual(twice.lastModified, 101)
  })

  it("is counted once when two workers saw it", () => {
    const list = evolveList(before.when(struck("a", 1, 1, 300)), struck("a", 1, 1, 301), 4)
    assert.strictEqual(list.subscriptions["a"]?.strikes?.count, 1)
    assert.isUndefined(before.when(struck("a", 1, 2, 300)).subscriptions["a"]?.strikes)
  })

  it("ends in its suspension, the first of which stays, and in nothing more", () => {
    const list = given(
      put("a", 100),
      struck("a", 1, 1, 200),
      struck("a", 1, 2, 250),
      suspended("a", 1, 300)
    ).when(suspended("a", 1, 400))
    const expected = {
      data: data("a"),
      seq: 1,
      lastModified: 100,
      suspended: { cause: "unknown-host" as const, at: 300 }
    }
    assert.deepStrictEqual(list.subscriptions["a"], expected)
    assert.deepStrictEqual(evolveList(list, struck("a", 1, 1, 500), 6).subscriptions["a"], expected)
    assert.strictEqual(list.lastModified, 100)
  })

  it("is forgotten when it is cleared or put again, and not for another generation", () => {
    const twice = [put("a", 100), struck("a", 1, 1, 200), struck("a", 1, 2, 250)] as const
    const held = given(...twice, suspended("a", 1, 300))
    assert.deepStrictEqual(
      held.when(cleared("a", 1)).subscriptions,
      given(put("a", 100)).before.subscriptions
    )
    assert.deepStrictEqual(held.when(put("a", 102)).subscriptions["a"], {
      data: data("a"),
      seq: 1,
      lastModified: 102
    })
    const cleanAgain = given(...twice, cleared("a", 1))
    assert.deepStrictEqual(
      cleanAgain.when(suspended("a", 1, 300)).subscriptions,
      cleanAgain.before.subscriptions
    )
    assert.isDefined(held.when(cleared("a", 2)).subscriptions["a"]?.suspended)
    const again = given(put("a", 100), put("a", 101, { vapidKey: "another" }))
    for (const command of [struck("a", 1, 1, 200), suspended("a", 1, 200)])
      assert.deepStrictEqual(again.when(command).subscriptions, again.before.subscriptions)
  })

  it("stays the target of waiting pushes when stored again, unless its key changes", () => {
    const list = given(put("a", 100))
    assert.strictEqual(list.when(put("a", 101)).subscriptions["a"]?.seq, 1)
    assert.strictEqual(list.when(put("a", 101, { vapidKey: "another" })).subscriptions["a"]?.seq, 2)
  })

  it("of one that is gone is nothing", () => {
    const list = given(put("a", 100), gone("a", 1, 110))
    for (const command of [
      struck("a", 1, 1, 200),
      suspended("a", 1, 200),
      cleared("a", 1),
      suspended("constructor", 0, 1)
    ])
      assert.deepStrictEqual(list.when(command), { ...list.before, seq: 3 })
  })
})

describe("the cause of a removal", () => {
  it("is what was written down, or what the status of an older one says", () => {
    const removal = { id: "a", generation: 1, broadcast: 1, at: 1 }
    assert.strictEqual(causeOf({ ...removal, status: 403, cause: "key-mismatch" }), "key-mismatch")
    assert.deepStrictEqual(
      [404, 410, 403, 0].map((status) => causeOf({ ...removal, status })),
      ["gone", "gone", "key-mismatch", "invalid-key"]
    )
    const text = JSON.stringify({ ...removal, status: 410 })
    assert.deepStrictEqual(decodeMessage("subscription.gone/1", text), {
      ...removal,
      status: 410,
      type: "subscription.gone/1"
    })
  })
})

describe("tombstones", () => {
  it("are forgotten, the oldest first, beyond the number that fits into a list", () => {
    const commands = Array.from({ length: tombstonesMax + 2 }, (_, i) => [
      put(`s${i}`, 2 * i + 1),
      del([`s${i}`, 2 * i + 2])
    ]).flat()
    const { tombstones } = given(...commands).before
    assert.strictEqual(Object.keys(tombstones).length, tombstonesMax)
    assert.isUndefined(tombstones["s1"])
    assert.strictEqual(tombstones["s2"], 6)
    assert.strictEqual(tombstones[`s${tombstonesMax + 1}`], 2 * tombstonesMax + 4)
  })
})

/**
 * Requests of clients and push services in any order; the list gives timestamps as the gateway
 * does.
 */
const wish = fc.record({
  what: fc.constantFrom(
    "put",
    "put",
    "put",
    "delete",
    "deleteAll",
    "gone",
    "struck",
    "struck",
    "suspended",
    "cleared",
    "matched"
  ),
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
    const commands = {
      put: () => put(id, next),
      gone: () => gone(id, generation, now),
      struck: () => struck(id, generation, 1 + skipped, now),
      suspended: () => suspended(id, generation, now),
      cleared: () => cleared(id, generation, now),
      matched: () => matched(id, generation, `key ${skipped}`)
    }
    const command =
      what === "delete" || what === "deleteAll"
        ? del(...ids.map((each, i): readonly [string, number] => [each, next + i]))
        : commands[what]()
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

describe("any order of commands", () => {
  it("gives the same list when any part of it is delivered again", () => {
    fc.assert(
      fc.property(history, fc.nat(40), fc.nat(40), fc.nat(40), (steps, a, b, c) => {
        const [from = 0, to = 0, end = 0] = [a, b, c]
          .map((each) => Math.min(each, steps.length))
          .sort((x, y) => x - y)
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

  it("gives each change a timestamp above all earlier ones, whatever the clock says", () => {
    fc.assert(
      fc.property(history, (steps) => {
        for (const { after, before } of steps) {
          const highest = Math.max(0, ...stamps(before))
          assert.isAtLeast(before.lastModified, highest)
          const fresh = stamps(after).filter((stamp) => !stamps(before).includes(stamp))
          for (const stamp of fresh) assert.isAbove(stamp, before.lastModified)
          assert.strictEqual(
            after.lastModified,
            fresh.length === 0 ? before.lastModified : Math.max(...fresh)
          )
          assert.strictEqual(new Set(stamps(after)).size, stamps(after).length)
        }
      })
    )
  })

  it("never shows a subscription and its tombstone at once", () => {
    fc.assert(
      fc.property(history, (steps) => {
        for (const { after } of steps)
          for (const id of Object.keys(after.tombstones))
            assert.isUndefined(after.subscriptions[id])
      })
    )
  })

  it("applies events of push services only to the generation that they name", () => {
    const bare = (list: SubscriptionList) =>
      Object.fromEntries(
        Object.entries(list.subscriptions).map(
          ([id, { strikes: _, suspended: __, vapidKey: ___, ...stored }]) => [id, stored]
        )
      )
    fc.assert(
      fc.property(history, (steps) => {
        for (const { after, before, command, seq } of steps) {
          if (!/struck|suspended|cleared|matched/.test(command.type)) continue
          assert.deepStrictEqual(
            { ...after, subscriptions: bare(after) },
            { ...before, seq, subscriptions: bare(before) }
          )
          const { id, generation } = command as { id: string; generation: number }
          for (const [each, stored] of Object.entries(after.subscriptions)) {
            assert.isFalse(stored.strikes !== undefined && stored.suspended !== undefined)
            if (each !== id || stored.seq !== generation)
              assert.deepStrictEqual(stored, before.subscriptions[each])
          }
        }
      })
    )
  })

  it("lets a gone remove exactly the generation it names", () => {
    fc.assert(
      fc.property(history, (steps) => {
        for (const { after, before, command } of steps) {
          if (command.type !== "subscription.gone/1") continue
          const { [command.id]: target, ...others } = before.subscriptions
          const expected =
            target === undefined || target.seq === command.generation
              ? others
              : before.subscriptions
          assert.deepStrictEqual(after.subscriptions, expected)
        }
      })
    )
  })
})
