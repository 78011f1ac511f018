// Which scopes cover which: the rules of contract section 7.4.
import { assert, describe, it } from "vitest"
import { coversAll } from "#identity/tokens/claims.ts"

const cases: ReadonlyArray<readonly [provided: string, required: string, covered: boolean]> = [
  ["a", "a", true],
  ["a", "a:b", true],
  ["a:b", "a", false],
  ["a:b", "a:b:c", true],
  ["a", "ab", false],
  ["a", "a:write", false],
  ["a:write", "a:write", true],
  ["a:write", "a", true],
  ["a:write", "a:b:write", true],
  ["a:b:write", "a:write", false],
  ["https://x.org/a", "https://x.org/a/b", true],
  ["https://x.org/a", "https://x.org/ab", false],
  ["https://x.org/a/b", "https://x.org/a", false],
  ["https://x.org/a#read", "https://x.org/a#read", true],
  ["https://x.org/a", "https://x.org/a#read", false],
  ["https://x.org/a", "https://y.org/a", false],
  ["https", "https://x.org/a", false]
]

describe("a scope", () => {
  for (const [provided, required, covered] of cases)
    it(`${provided} ${covered ? "covers" : "does not cover"} ${required}`, () => {
      assert.strictEqual(coversAll([provided], [required]), covered)
    })

  it("must be there for each that is required", () => {
    assert.isTrue(coversAll(["a", "b"], ["a", "b:c"]))
    assert.isFalse(coversAll(["a"], ["a", "b"]))
    assert.isTrue(coversAll([], []))
  })
})
