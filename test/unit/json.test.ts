// What a JSON text from outside loses when it is read, and what it does not.
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { parseWhole } from "#basics/json.ts"

const lost: ReadonlyArray<readonly [text: string, why: RegExp]> = [
  ['{"n":1e400}', /1e400 is too large/],
  ['{"n":[-1E400]}', /-1E400 is too large/],
  [`{"n":1${"0".repeat(400)}.5}`, /is too large/],
  ['{"n":1e-400}', /1e-400 is too small/],
  [`{"n":0.${"0".repeat(400)}1}`, /^the number .{64}\.\.\. is too small/],
  ['{"n":738529527931269425}', /738529527931269425 would become 738529527931269400: .* a string/],
  ['{"a":{"b":[{"n":-9007199254740993}]}}', /-9007199254740993 would become -9007199254740992/],
  ["123456789012345678901234", /would become 1.2345678901234569e\+23/],
  ["9007199254740993.0", /9007199254740993.0 would become 9007199254740992/],
  ["12345678901234567890.0", /12345678901234567890.0 would become 12345678901234567000/],
  ["12345678901234567890e0", /12345678901234567890e0 would become/],
  ["-1.2345678901234567890E19", /would become -12345678901234567000/],
  ["123456789012345678900e-1", /would become 12345678901234567000/],
  ["12345678901234567890.00e+00", /would become/],
  ["1.2345678901234567891e300", /would become/],
  ['{"n":1,"n":2}', /"n" stands twice/],
  ['{"a":{"n":1,"\\u006e" : 2}}', /"n" stands twice/],
  ['[{"__proto__":1,"__proto__":2}]', /"__proto__" stands twice/],
  ['{"":1,"":2}', /"" stands twice/]
]

const kept: ReadonlyArray<string> = [
  "0",
  "-0",
  "0.0e9",
  "5e-324",
  "0.1234567890123456789",
  "9007199254740993.5",
  "12345678901234567890.5",
  "1234567890123456789.05e1",
  "12345678901234567000.00",
  "1.2345678901234567e19",
  "1234567890123456700000e-2",
  "1.7976931348623157e308",
  "0.5e1",
  "9007199254740992",
  "738529527931269400",
  "100000000000000000000",
  "1e20",
  "1000000000000000000000",
  '[{"a":1},{"a":{"a":1}}]',
  '{"a":"a:","b":"a","c":["a","a"]}',
  '{"a":"{\\"a\\":1e400,\\"a\\":738529527931269425"}',
  '{"a\\\\":"1e400","a":"\\\\","b":"738529527931269425"}'
]

describe("a JSON text", () => {
  it.for(lost)("%s is refused", ([text, why]) => {
    const parsed = parseWhole(text)
    assert.match((parsed as { readonly loss: string }).loss, why)
  })

  it.for(kept)("%s is read", (text) => {
    assert.deepEqual(parseWhole(text), { json: JSON.parse(text) })
  })

  it("of 500,000 digits, escapes or blanks is read in linear time", { timeout: 20_000 }, () => {
    // Quadratic time would be minutes.
    const zeros = "0".repeat(500_000)
    for (const number of [`0.${zeros}1`, `1${zeros}1`])
      assert.property(parseWhole(`{"n":${number}}`), "loss")
    for (const text of [
      `{"a":"${'\\"'.repeat(250_000)}"}`,
      `["a"${" ".repeat(500_000)}]`,
      `1${zeros}e-500000`,
      `1.${zeros}`,
      `1${zeros}1e-500001`
    ])
      assert.property(parseWhole(text), "json")
  })

  it("that JavaScript wrote is read, whatever it says", () => {
    const json = fc.jsonValue({ maxDepth: 4 })
    const double = fc.double({ noNaN: true, noDefaultInfinity: true })
    fc.assert(
      fc.property(fc.oneof(json, fc.array(double), fc.dictionary(fc.string(), double)), (value) => {
        const text = JSON.stringify(value, undefined, 1)
        assert.deepEqual(parseWhole(text), { json: JSON.parse(text) })
      })
    )
  })

  it("with an integer beyond 2^53 is read if its digits stay the same, and refused else", () => {
    fc.assert(
      fc.property(fc.bigInt(2n ** 53n, 2n ** 69n), (integer) => {
        const isKept = String(Number(integer)) === String(integer)
        const written = String(integer)
        const point = `${written.slice(0, -5)}.${written.slice(-5)}e5`
        for (const number of [written, `${written}.0`, `${written}e0`, `${written}00e-2`, point]) {
          const parsed = parseWhole(`{"n":${number}}`)
          assert.equal(typeof parsed === "object" && "json" in parsed, isKept, number)
        }
      })
    )
  })
})
