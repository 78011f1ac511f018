// Filters, order and pages with random values. The conformance tests only have examples.

import { Effect } from "effect"
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import type { JsonObject } from "#basics/json.ts"
import {
  comparableOf,
  compare,
  memberAt,
  project,
  type Row,
  textOf
} from "#gateway/listing/field.ts"
import { type Listing, queryPairs, readListing } from "#gateway/listing/query.ts"
import { matching, pageOf, placeOf, readFilter } from "#gateway/listing/select.ts"

const value = fc.oneof(
  fc.constant(null),
  fc.string({ maxLength: 3 }),
  fc.integer({ min: -3, max: 3 }),
  fc.boolean(),
  fc.array(fc.integer(), { maxLength: 2 })
)
const objects = fc
  .array(
    fc.record(
      { a: value, b: value, c: fc.record({ d: value }, { requiredKeys: [] }) },
      { requiredKeys: [] }
    ),
    { maxLength: 30 }
  )
  .map(
    (list): ReadonlyArray<Row> =>
      list.map((data, i) => ({ own: { id: `${i}`, last_modified: 1_000 + i }, data }))
  )
const sorts = fc.constantFrom(
  "",
  "a",
  "-a,b",
  "c.d,-b",
  "b,-a,c.d",
  "last_modified",
  "-a,last_modified",
  "nothing"
)

const compareValues = (a: unknown, b: unknown) =>
  compare(comparableOf(a, new WeakMap()), comparableOf(b, new WeakMap()))

/** All matching objects, in order. */
const select = async (rows: ReadonlyArray<Row>, listing: Listing): Promise<ReadonlyArray<Row>> => {
  const found = await Effect.runPromise(matching(rows, listing))
  return (await Effect.runPromise(pageOf(found, listing, rows.length + 1))).shown
}

const listingOf = (query: string) => {
  const errors: Array<never> = []
  const listing = readListing(queryPairs(query)!, errors, { now: 0, removes: false })
  assert.deepEqual(errors, [])
  return listing
}

describe("pages", () => {
  it("show every object once, in the order of the whole list, whatever is missing", async () => {
    const limits = fc.integer({ min: 1, max: 7 })
    await fc.assert(
      fc.asyncProperty(objects, sorts, limits, async (list, sort, limit) => {
        const listing = listingOf(`_sort=${sort}`)
        const all = await select(list, listing)
        const shown: Array<Row> = []
        let token: Listing["token"]
        for (let more = true; more; ) {
          const page = await Effect.runPromise(pageOf(all, { ...listing, token }, limit))
          shown.push(...page.shown)
          more = page.more
          const last = placeOf(page.shown.at(-1) ?? { own: {}, data: {} }, listing.sort)
          // A token passes through JSON.
          token = { last_object: JSON.parse(JSON.stringify(last)) } as Listing["token"]
        }
        assert.deepEqual(shown, all)
      })
    )
  })
})

describe("a shown object", () => {
  const row = (data: string): Row => ({
    own: { id: "a", last_modified: 1 },
    data: JSON.parse(data) as JsonObject
  })

  it("has the server's id and timestamp, whatever its owner stored under these names", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom("id", "a", "b.c", "__proto__"), value), (data) => {
        const [shown] = [{ own: { id: "x", last_modified: 1 }, data }]
        const text = textOf(shown, undefined)
        assert.deepEqual(JSON.parse(text), { ...data, ...shown.own })
        assert.strictEqual(text.split('"id":').length, 2)
      })
    )
  })

  it("has the fields that _fields names, also names that every object of JavaScript has", () => {
    const fields = ["__proto__", "constructor", "m.__proto__", "m.1", "m.2", "a.b", "n.x"]
    const stored = '{"__proto__":1,"m":{"__proto__":{"x":1},"1":1,"2":2,"3":3},"a.b":1,"n":1}'
    assert.strictEqual(
      JSON.stringify(project(row(stored), fields)),
      '{"__proto__":1,"a.b":1,"m":{"1":1,"2":2,"__proto__":{"x":1}},"id":"a","last_modified":1}'
    )
    assert.strictEqual(JSON.stringify(project(row("{}"), fields)), '{"id":"a","last_modified":1}')
  })

  it("does not depend on which of two overlapping fields is named first", () => {
    const stored = row('{"a":{"b":1,"c":2}}')
    for (const fields of [
      ["a", "a.b"],
      ["a.b", "a"]
    ])
      assert.deepEqual(project(stored, fields)["a"], { b: 1, c: 2 })
  })
})

describe("the order of values", () => {
  it("is total", () => {
    fc.assert(
      fc.property(
        fc.array(fc.option(value, { nil: undefined }), { minLength: 3, maxLength: 3 }),
        ([a, b, c]) => {
          assert.strictEqual(Math.sign(compareValues(a, b)), -Math.sign(compareValues(b, a)))
          if (compareValues(a, b) <= 0 && compareValues(b, c) <= 0)
            assert.isAtMost(compareValues(a, c), 0)
        }
      )
    )
  })

  it("is null < string < number < boolean < array < object < missing", () => {
    const ascending = [null, "", "b", -1, 2, false, true, [], {}, undefined]
    for (let i = 1; i < ascending.length; i++)
      assert.isBelow(compareValues(ascending[i - 1], ascending[i]), 0, `at ${i}`)
  })
})

describe("filters", () => {
  it("split the list: not_ keeps what the plain filter removes", async () => {
    const fields = fc.constantFrom("a", "b", "c.d")
    await fc.assert(
      fc.asyncProperty(objects, fields, value, async (list, field, wanted) => {
        const text = encodeURIComponent(JSON.stringify(wanted))
        const size = async (query: string) => (await select(list, listingOf(query))).length
        const both = async (first: string, second: string) =>
          (await size(`${first}${field}=${text}`)) + (await size(`${second}${field}=${text}`))
        assert.strictEqual(await both("", "not_"), list.length)
        if (!text.includes("%2C")) assert.strictEqual(await both("in_", "exclude_"), list.length)
        assert.strictEqual(await both("lt_", "min_"), list.length)
        assert.strictEqual(await both("gt_", "max_"), list.length)
        assert.strictEqual(
          await size(`has_${field}=true`),
          list.filter((object) => memberAt(object.data, field) !== undefined).length
        )
      })
    )
  })

  it("take like_ literally but for asterisks", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ maxLength: 8 }),
        fc.array(fc.string({ maxLength: 3 }), { minLength: 1, maxLength: 4 }),
        async (text, parts) => {
          const pattern = JSON.stringify(parts.join("*"))
          fc.pre(!pattern.includes("\\u0000") && !pattern.includes("\0"))
          const filter = readFilter("like_a", pattern)
          assert.isFalse("location" in filter)
          const escaped = parts
            .join("*")
            .replace(/[.+?^${}()|[\]\\]/g, "\\$&")
            .replaceAll("*", "[^]*")
          const naive = parts.join("*").includes("*")
            ? new RegExp(`^${escaped.toLowerCase()}$`)
            : new RegExp(escaped.toLowerCase())
          const row = { own: { last_modified: 1 }, data: { a: text } }
          const shown = await select([row], {
            ...listingOf(""),
            filters: [filter as Exclude<typeof filter, { location: string }>]
          })
          assert.strictEqual(shown.length === 1, naive.test(text.toLowerCase()))
        }
      ),
      { numRuns: 2_000 }
    )
  })

  it("never fail, whatever the query string", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "binary" }), objects, async (query, list) => {
        const pairs = queryPairs(query)
        if (pairs === undefined) return
        const listing = readListing(pairs, [], { now: 0, removes: false })
        for (const row of await select(list, listing)) textOf(row, listing.fields)
      }),
      { numRuns: 500 }
    )
  })

  it("know no field but those that are stored", async () => {
    const row = { own: { last_modified: 1 }, data: { a: 1 } }
    for (const name of ["constructor", "toString", "valueOf", "hasOwnProperty"])
      for (const query of [`${name}=5`, `has_${name}=true`, `_sort=${name}&has_a=false`])
        assert.deepEqual(await select([row], listingOf(query)), [], query)
  })
})
