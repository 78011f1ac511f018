// Strikes against a subscription: what adds them, what they lead to, and what removes them.
import { assert, describe, it } from "@effect/vitest"
import { evolveList } from "#domain/subscription/subscription.ts"
import { cleared, data, given, gone, put, struck, suspended } from "#test/subscription-commands.ts"

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
