// The limits of a list's query string, and its errors.
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import type { JsonObject } from "#basics/json.ts"
import { mapInTurns } from "#clock/map-in-turns.ts"
import type { ErrorDetail } from "#gateway/http/response.ts"
import { textOf } from "#gateway/listing/field.ts"
import { queryPairs, readListing } from "#gateway/listing/query.ts"
import { matching, pageOf } from "#gateway/listing/select.ts"

const listingOf = (query: string) => {
  const errors: Array<ErrorDetail> = []
  const listing = readListing(queryPairs(query)!, errors, { now: 1_000, removes: false })
  assert.deepEqual(errors, [])
  return listing
}

describe("the longest query string", () => {
  const numbers = Array.from({ length: 3_500 }, (_, i) => i)
  const empty = Array.from({ length: 5_000 }, () => [])
  const deep = (depth: number): JsonObject =>
    depth === 0 ? { numbers: numbers.slice(0, 2_000) } : { a: deep(depth - 1) }
  const keys = Object.fromEntries(numbers.slice(0, 1_700).map((i) => [i, 1]))
  const list = Array.from({ length: 50 }, (_, i) => ({
    own: { id: `${i}`, last_modified: 1_000 + i },
    data: { numbers, empty, m: keys, o: deep(4), s: "a".repeat(15_000) }
  }))
  const filled = (item: (i: number) => string, separator: string) => {
    let text = item(0)
    for (let i = 1; text.length < 15_000; i++) text += separator + item(i)
    return text
  }

  it.for([
    ["too many parameters", filled((i) => `k${i}=1`, "&"), null],
    ["too many parameters of one name", filled(() => "k=1", "&"), null],
    ["a parameter whose name is too long", `${"k".repeat(15_000)}=1`, null],
    ["a name of too many parts", `not_${"a.".repeat(20)}a=1`, `not_${"a.".repeat(20)}a`],
    ["too many fields to show", `_fields=${filled((i) => `m.${i}`, ",")}`, "_fields"],
    ["a field to show of too many parts", `_fields=${"a.".repeat(7_000)}a`, "_fields"],
    ["too many fields to sort by", `_sort=${filled((i) => `k${i}`, ",")}`, "_sort"],
    ["a field to sort by of too many parts", `_sort=${"a.".repeat(20)}a`, "_sort"],
    ["too many values", `exclude_m=${filled(() => "{}", ",")}`, "exclude_m"],
    ["too long a pattern", `like_s=${"a*".repeat(5_000)}`, "like_s"]
  ] as const)("is refused for %s, soon", ([, query, name]) => {
    const errors: Array<ErrorDetail> = []
    const began = performance.now()
    readListing(queryPairs(query)!, errors, { now: 0, removes: false })
    assert.deepEqual(
      errors.map(({ location, name }) => [location, name]),
      [["querystring", name]]
    )
    // Without the bound these took 1 to 3 s.
    assert.isBelow(performance.now() - began, 500)
  })

  /** Milliseconds of this thread's CPU. The clock would also count other programs. */
  const cpuMillis = (): number => {
    const { system, user } = process.threadCpuUsage()
    return (system + user) / 1_000
  }

  /** The longest time without a turn of the event loop. */
  const longestTurn = async (work: Effect.Effect<unknown>): Promise<number> => {
    let longest = 0
    let last = cpuMillis()
    const look = () => {
      longest = Math.max(longest, cpuMillis() - last)
      last = cpuMillis()
    }
    const timer = setInterval(look, 1)
    await Effect.runPromise(work)
    look()
    clearInterval(timer)
    return longest
  }
  const names = ["m", "o", "o.a", "o.a.a", "o.a.a.a", "numbers", "empty", "s"]

  it.for([
    [
      "reads the largest values for each filter",
      `${names.map((n) => `exclude_${n}={}`).join("&")}`
    ],
    ["orders by the largest values", `_sort=${names}`],
    ["looks for lists in a list", `contains_any_empty=[${filled((i) => `[${i}]`, ",")}]`],
    ["looks for a list in a list", `contains_numbers=[${numbers.slice(500)}]`],
    ["looks for a text in long texts", `like_s=*b${"a".repeat(250)}*`],
    ["shows many fields", `_fields=${numbers.slice(0, 64).map((i) => `m.${i}`)}`],
    ["shows everything", ""]
  ] as const)("keeps nobody waiting who %s", async ([, query]) => {
    const listing = listingOf(query)
    const turn = await longestTurn(
      Effect.gen(function* () {
        const { shown } = yield* pageOf(yield* matching(list, listing), listing, 50)
        return yield* mapInTurns(shown, (row) => textOf(row, listing.fields))
      })
    )
    assert.isBelow(turn, 250)
  })
})

describe("the query string of a request that removes", () => {
  const errorsOf = (query: string, removes: boolean) => {
    const errors: Array<ErrorDetail> = []
    readListing(queryPairs(query)!, errors, { now: 1_000, removes })
    return errors.map(({ name }) => name)
  }

  it.for([
    ["id=", "id", false],
    ["id", "id", false],
    ["last_modified=", "last_modified", false],
    ["_to=", "_to", false],
    ["_since=", "_since", false],
    ["_before", "_before", false],
    ["_limit=", "_limit", true],
    ["_limit=0", "_limit", true],
    ["_limit=0.5", "_limit", false],
    ["_token=", "_token", true],
    ["_sort=&_limit=1", "_sort", true],
    ["_since=null", "_since", true],
    ["_before=null", "_before", true],
    ["_ids=abc", "_ids", true],
    ["__proto__=5", "__proto__", true],
    ["not_id=", "not_id", true],
    ["exclude_id=", "exclude_id", true],
    ["like_endpoint=", "like_endpoint", true],
    ["min_n=", "min_n", true]
  ] as const)("is refused for %s, which would name more than was meant", ([query, name, alone]) => {
    assert.deepEqual(errorsOf(query, true), [name])
    // Without removal, some of these only select more objects.
    assert.deepEqual(errorsOf(query, false), alone ? [] : [name])
  })

  it("may be empty, and may name what is known", () => {
    for (const query of ["", "_limit=1&_sort=n&_fields=id", "id=a", "_before=5&n=1", "in_id=a,b"])
      assert.deepEqual(errorsOf(query, true), [], query)
  })
})

describe("timestamps in a query string", () => {
  it.for([
    "like_last_modified=abc",
    "in_last_modified=1.5",
    "in_last_modified=1,x",
    "last_modified=1.5",
    "gt_last_modified=null",
    "_since=1.5"
  ])("are whole numbers, unlike those of %s", (query) => {
    const errors: Array<ErrorDetail> = []
    readListing(queryPairs(query)!, errors, { now: 1_000, removes: false })
    assert.deepEqual(
      errors.map(({ name }) => name),
      [query.slice(0, query.indexOf("="))]
    )
  })

  it("make tombstones part of the list, also where there is no bound", () => {
    for (const query of [
      "_since=null",
      "_to=null",
      "_since=0",
      "last_modified=1",
      "in_last_modified=1"
    ])
      assert.isTrue(listingOf(query).withTombstones, query)
    assert.deepEqual(listingOf("_since=null").filters, [])
    assert.isFalse(listingOf("n=1").withTombstones)
  })
})
