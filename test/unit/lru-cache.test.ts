// What is kept for each push service: made once, and forgotten in the order of use.
import { assert, describe, it } from "vitest"
import { LruCache } from "#basics/bounded.ts"

describe("what is kept for push services", () => {
  it("is made once for each name", () => {
    const kept = new LruCache<{ readonly name: string }>(4)
    const make = (name: string) => kept.of(name, () => ({ name }))
    assert.strictEqual(make("a"), make("a"))
    assert.notStrictEqual(make("a"), make("b"))
    assert.deepEqual(
      [...kept.all()].map(({ name }) => name),
      ["a", "b"]
    )
  })

  it("survives a thousand other names while it is used, and its memory has a bound", () => {
    const kept = new LruCache<string>(10)
    kept.of("used", () => "the first")
    for (let i = 0; i < 1_000; i++) {
      kept.of(`made up ${i}`, () => "another")
      assert.strictEqual(
        kept.of("used", () => "a second"),
        "the first"
      )
      assert.isAtMost([...kept.all()].length, 10)
    }
  })

  it("hands over what it forgets, so that it can be closed", () => {
    const forgotten: Array<string> = []
    const kept = new LruCache<string>(2, (each) => void forgotten.push(each))
    for (const name of ["a", "b", "a", "c", "d"]) kept.of(name, () => name)
    assert.deepEqual(forgotten, ["b", "a"])
  })
})
