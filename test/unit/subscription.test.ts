// A user's list of subscriptions: what each command does.
import { assert, describe, it } from "@effect/vitest"
import { isSameBrowser } from "#domain/subscription/command.ts"
import { growsList } from "#domain/subscription/subscription.ts"
import { tombstonesMax } from "#domain/subscription/tombstone.ts"
import { data, del, given, gone, matched, put } from "#test/subscription-commands.ts"

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

describe("a subscription that is stored again", () => {
  const stored = (auth: string, p256dh: string) => ({
    ...({ type: "subscription.put", user: "ann", id: "a", lastModified: 100 } as const),
    data: { ...data("a"), keys: { auth, p256dh } }
  })

  it("is of the same browser in any spelling of its keys, and of no other bytes", () => {
    const former = stored("J_aSIgg", "BDv-_w")
    assert.isTrue(isSameBrowser(former, stored("J/aSIgg=", "BDv+/w==")))
    assert.isFalse(isSameBrowser(former, stored("K/aSIgg=", "BDv+/w==")))
  })
})

describe("a list that is put to", () => {
  it("grows by a subscription that is new or has more bytes than before", () => {
    const list = given(put("a", 100)).when(put("b", 101))
    const { endpoint, keys } = data("a")
    const grows = (id: string, more = {}) =>
      growsList(list, { id, data: { endpoint, keys, ...more } })
    assert.isTrue(grows("c"))
    assert.isTrue(grows("constructor"))
    assert.isFalse(grows("a"))
    assert.isTrue(grows("a", { extra: "ü" }))
    assert.isFalse(grows("a", { endpoint: endpoint.slice(1) }))
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
