// Columns for the terminal, and what must not reach it.
import { assert, describe, it } from "@effect/vitest"
import { table } from "#cli/terminal/output.ts"
import { printableJson } from "#telemetry/redaction.ts"

describe("a table", () => {
  it("aligns columns, numbers to the right, with a dash for a missing value", () => {
    const lines = [
      ["NAME", "COUNT", "STATUS"],
      ["a", 5, 201],
      ["longer", 1234567, undefined]
    ] as const
    assert.strictEqual(
      table(lines[0], lines.slice(1)),
      "NAME      COUNT  STATUS\na             5     201\nlonger  1234567       -"
    )
  })

  it("escapes control characters, so that no name controls the terminal or adds a line", () => {
    assert.strictEqual(
      table(["NAME"], [["a\u001b[2J\nb\u009b\u0000\u202e\u2028"]]),
      "NAME\na\\u001b[2J\\u000ab\\u009b\\u0000\\u202e\\u2028"
    )
  })
})

it("writes JSON whose text steers no terminal and whose value is the same", () => {
  const hidden = "\u00ad\u200b\ufeff\u{e0041}"
  const value = { "a\u009b": `b\u007f\u2029\u2067\u001b${hidden}`, plain: "ü \u{1f600}" }
  const text = printableJson(value)
  assert.notMatch(text, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
  assert.include(text, "ü \u{1f600}")
  assert.deepEqual(JSON.parse(text), value)
})
