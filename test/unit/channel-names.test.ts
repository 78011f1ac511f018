// The index of the names of channels: whatever names there are, in whatever order they came.
import { assert, it } from "@effect/vitest"
import fc from "fast-check"
import { compareNames, folded, Names } from "#gateway/channels/names.ts"

const name = fc.string({
  unit: fc.constantFrom("a", "A", "b", "ß", "ς", "İ", "-", "\0"),
  maxLength: 5
})

it("finds the names behind one that begin with some texts, in any case and in order", () => {
  const names = fc.array(name, { maxLength: 30 })
  fc.assert(
    fc.property(names, names, fc.option(name), name, name, (first, later, after, prefix, other) => {
      const behind = after ?? undefined
      const index = new Names(first)
      const known = new Set(first)
      for (const each of later) {
        assert.equal(index.add(each), !known.has(each))
        known.add(each)
      }
      const expected = [...known]
        .filter((each) => [prefix, other].every((text) => folded(each).startsWith(folded(text))))
        .filter((each) => behind === undefined || compareNames(each, behind) > 0)
        .sort(compareNames)
      assert.deepEqual([...index.within([index.range(behind, prefix, other)])], expected)
    })
  )
})

it("passes each name once, however ranges overlap", () => {
  const index = new Names(["eu-a", "EU-b", "us-a", "us-b"])
  const ranges = ["us", "", "eu-B"].map((prefix) => index.range("eu-a", prefix))
  assert.deepEqual([...index.within(ranges)], ["EU-b", "us-a", "us-b"])
})
