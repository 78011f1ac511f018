// Filters, order and pages as pure functions: what the conformance suite samples, for any values.
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { readFilter } from "#gateway/listing/filter.ts"
import { pageOf, queryPairs, readListing, select } from "#gateway/listing/listing.ts"
import { placeOf } from "#gateway/listing/sort.ts"
import { comparableOf, compare, type JsonObject, valueAt } from "#gateway/listing/value.ts"

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
    (list): ReadonlyArray<JsonObject> =>
      list.map((object, i) => ({ ...object, last_modified: 1000 + i }))
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

const compareValues = (a: unknown, b: unknown) => compare(comparableOf(a), comparableOf(b))

const listingOf = (query: string) => {
  const faults: Array<never> = []
  const listing = readListing(queryPairs(query)!, 0, faults)
  assert.deepEqual(faults, [])
  return listing
}

describe("pages", () => {
  it("show every object once, in the order of the whole list, whatever is missing", () => {
    fc.assert(
      fc.property(objects, sorts, fc.integer({ min: 1, max: 7 }), (list, sort, limit) => {
        const listing = listingOf(`_sort=${sort}`)
        const all = select(list, listing)
        const shown: Array<JsonObject> = []
        for (
          let token:
              | { last_object: JsonObject; offset: number; nonce: string; expires: number }
              | undefined,
            more = true;
          more;
        ) {
          // A token has been JSON on its way.
          const page = pageOf(
            all,
            {
              ...listing,
              token: token === undefined ? undefined : JSON.parse(JSON.stringify(token))
            },
            limit
          )
          shown.push(...page.shown)
          more = page.more
          token = {
            last_object: placeOf(page.shown.at(-1) ?? {}, listing.sort),
            offset: shown.length,
            nonce: "",
            expires: 0
          }
        }
        assert.deepEqual(shown, all)
      })
    )
  })
})

describe("a query string of 16 KB", () => {
  const ordered = Array.from({ length: 3_500 }, (_, i) => i)
  const deep = (depth: number): JsonObject =>
    depth === 0 ? { ordered: ordered.slice(0, 2_000) } : { a: deep(depth - 1) }
  const list = Array.from(
    { length: 50 },
    (_, i): JsonObject => ({ ordered, o: deep(60), last_modified: 1000 + i })
  )
  const parts = `${"a.".repeat(7_500)}a`
  const repeated = (item: string, name: string) =>
    `${name}${Array(Math.floor(16_000 / (item.length + 1))).fill(item)}`

  it.for([
    ["a name of very many parts", `not_${parts}=1`],
    ["an order by a name of very many parts", `_sort=${parts}`],
    [
      "an order by many names of many parts",
      `_sort=${ordered.slice(0, 150).map((i) => `${"a.".repeat(50)}${i}`)}`
    ],
    ["an order by the same object again and again", repeated("o", "_sort=")],
    ["many objects to be compared with one", repeated("{}", "exclude_o=")],
    [
      "an order by what is equal, part by part",
      `_sort=${ordered.slice(0, 50).map((i) => `o${".a".repeat(i)}`)}`
    ],
    ["a list to be found in a list", `contains_ordered=[${ordered.slice(500)}]`],
    [
      "a list of which one is to be found in a list",
      `contains_any_ordered=[${ordered.map((i) => i + 3_500)}]`
    ]
  ] as const)("holds nobody else up with %s", ([, query]) => {
    const began = performance.now()
    select(list, listingOf(query))
    assert.isBelow(performance.now() - began, 3_000)
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
  it("split the list: not_ keeps what the plain filter leaves, and so do in_ and exclude_", () => {
    fc.assert(
      fc.property(objects, fc.constantFrom("a", "b", "c.d"), value, (list, field, wanted) => {
        const text = encodeURIComponent(JSON.stringify(wanted))
        const size = (query: string) => select(list, listingOf(query)).length
        assert.strictEqual(size(`${field}=${text}`) + size(`not_${field}=${text}`), list.length)
        if (!text.includes("%2C"))
          assert.strictEqual(
            size(`in_${field}=${text}`) + size(`exclude_${field}=${text}`),
            list.length
          )
        assert.strictEqual(size(`lt_${field}=${text}`) + size(`min_${field}=${text}`), list.length)
        assert.strictEqual(size(`gt_${field}=${text}`) + size(`max_${field}=${text}`), list.length)
        assert.strictEqual(
          size(`has_${field}=true`),
          list.filter((object) => valueAt(object, field) !== undefined).length
        )
      })
    )
  })

  it("take like_ literally but for asterisks", () => {
    fc.assert(
      fc.property(
        fc.string({ maxLength: 8 }),
        fc.array(fc.string({ maxLength: 3 }), { minLength: 1, maxLength: 4 }),
        (text, parts) => {
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
          const shown = select([{ a: text, last_modified: 1 }], {
            ...listingOf(""),
            filters: [filter as Exclude<typeof filter, { location: string }>]
          })
          assert.strictEqual(shown.length === 1, naive.test(text.toLowerCase()))
        }
      ),
      { numRuns: 2_000 }
    )
  })

  it("never fail, whatever the query string", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), objects, (query, list) => {
        const pairs = queryPairs(query)
        if (pairs === undefined) return
        const listing = readListing(pairs, 0, [])
        pageOf(select(list, listing), listing, 5)
      }),
      { numRuns: 5_000 }
    )
  })
})
