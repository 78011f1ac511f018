// Contract 1.10 and 3.9: filters, sorting, and errors of a query string.
import { expect } from "vitest"
import type { StoredObject } from "../api.ts"
import { type Case, define } from "../table.ts"
import { letters, zoo } from "../zoo.ts"

const filters: ReadonlyArray<readonly [query: string, letters: string]> = [
  ["", "edcba"],
  ["n=1", "a"],
  ["n=1.0", "a"],
  ['n="1"', ""],
  ["name=bear", "b"],
  ['name="bear"', "b"],
  ["flag=true", "a"],
  ["flag=false", "b"],
  ["nothing=null", "a"],
  ["unknown=1", ""],
  ["a-b=1", ""],
  ["deep.at=one", "a"],
  ["keys.auth=nonsense", ""],
  ['tags=["x","y"]', "a"],
  ['deep={"at":"two"}', "b"],
  ["n=1&flag=true", "a"],
  ["n=1&flag=false", ""],
  ["n=1&n=10", ""],
  ["not_n=1", "edcb"],
  ["not_unknown=1", "edcba"],
  ["lt_n=1", "d"],
  ["max_n=1", "da"],
  ["gt_n=2&has_n=true", "cb"],
  ["min_n=2.5&has_n=true", "cb"],
  ["gt_n=2", "ecb"],
  ["gt_mixed=5", "dba"],
  ["lt_mixed=z", "ec"],
  ["in_n=1,10,99", "ba"],
  ["in_name=bear,Ape", "ba"],
  ['in_name="bear"', "b"],
  ["exclude_n=1,10", "edc"],
  ["like_name=A", "cba"],
  ["like_name=at*", ""],
  ["like_name=*at*", "c"],
  ["like_name=*a", ""],
  ["like_name=b*r", "b"],
  ["like_name=g%20[", "d"],
  ["like_name=.", ""],
  ["like_n=x", ""],
  ["has_nothing=true", "a"],
  ["has_nothing=false", "edcb"],
  ["has_deep.at=true", "ba"],
  ["contains_tags=y", "ba"],
  ['contains_tags=["x","y"]', "a"],
  ["contains_tags=z", ""],
  ['contains_any_tags=["x","z"]', "a"],
  ["contains_name=Ape", ""],
  ["gt_last_modified=0", "edcba"],
  ["_unknown=1", "edcba"],
  ["_limit=", "edcba"],
  ["_limit=0", "edcba"],
  ["_limit=2", "ed"],
  ["_limit=99", "edcba"],
  ["_sort=n", "dacbe"],
  ["_sort=-n", "ebcad"],
  ["_sort=last_modified", "abcde"],
  ["_sort=-last_modified", "edcba"],
  ["_sort=%2Bn", "dacbe"],
  ["_sort=deep.at", "abedc"],
  ["_sort=unknown", "edcba"],
  ["_sort=mixed", "ecdba"],
  ["_sort=flag,-n", "baecd"],
  ["_sort=!,n", "dacbe"],
  ["_sort=", "edcba"],
  ["_since=null", "edcba"],
  ["_since=0", "edcba"]
]

const badQueries: ReadonlyArray<readonly [query: string, name: string]> = [
  ["_since=", "_since"],
  ["_before=", "_before"],
  ["_to=", "_to"],
  ["id=", "id"],
  ["id", "id"],
  ["last_modified=", "last_modified"],
  ["_since=1.5", "_since"],
  ["last_modified=1.5", "last_modified"],
  ["in_last_modified=1.5", "in_last_modified"],
  ["like_last_modified=abc", "like_last_modified"],
  ["_fields=m.a.b.c.d.e", "_fields"],
  ["_sort=a,b,c,d,e,f,g,h,i", "_sort"],
  ["_since=abc", "_since"],
  ["_since=-1", "_since"],
  ["_since=99999999999999", "_since"],
  ["_before=true", "_before"],
  ["_to=abc", "_to"],
  ["_limit=abc", "_limit"],
  ["_limit=2.5", "_limit"],
  ["_limit=0.5", "_limit"],
  ['_limit="0.5"', "_limit"],
  ["_limit=-1", "_limit"],
  ["_limit=99999999999999999999", "_limit"],
  ["_limit=1&_limit=2", "_limit"],
  ["id=12", "id"],
  ["in_id=1,2", "in_id"],
  ["exclude_id=1", "exclude_id"],
  ["last_modified=abc", "last_modified"],
  ["gt_last_modified=abc", "gt_last_modified"],
  ["in_last_modified=1,x", "in_last_modified"],
  ["like_name=12", "like_name"],
  ["name=a%00b", "name"],
  ["a%00b=1", "a\u0000b"],
  ["contains_id=x", "contains_id"],
  ["contains_any_last_modified=x", "contains_any_last_modified"],
  ["has_name=maybe", "has_name"]
]

/** Queries that would remove more than the client means: see `Rules.removes` of the listing. */
const badRemovals: ReadonlyArray<readonly [query: string, name: string]> = [
  ["id=", "id"],
  ["id", "id"],
  ["last_modified=", "last_modified"],
  ["_since=", "_since"],
  ["_before=", "_before"],
  ["_to=", "_to"],
  ["_since=null", "_since"],
  ["_limit=", "_limit"],
  ["_limit=0", "_limit"],
  ["_token=", "_token"],
  ["_ids=a", "_ids"],
  ["not_id=", "not_id"],
  ["like_name=", "like_name"]
]

export const filtering: ReadonlyArray<Case> = [
  ...filters.map(([query, wanted]) =>
    define<ReadonlyArray<StoredObject>>({
      name: `lists ${wanted === "" ? "nothing" : wanted} for ?${query}`,
      given: zoo,
      request: { method: "GET", path: `/subscriptions?${query}` },
      expected: { status: 200, headers: { ETag: /^"\d+"$/ } },
      also: ({ headers, json, text }, _, objects) => {
        expect(letters({ json, text })).toBe(wanted)
        // The timestamp of the list, whatever the page shows.
        expect(headers.etag).toBe(`"${objects[4]!.last_modified}"`)
        expect(headers["total-records"]).toBe(headers["total-objects"])
        if (!query.startsWith("_limit"))
          expect(headers["total-records"]).toBe(String(wanted.length))
      }
    })
  ),
  ...badQueries.map(([query, name]) =>
    define({
      name: `refuses ?${query}`,
      request: { method: "GET", path: `/subscriptions?${query}` },
      expected: { status: 400, errno: 107, details: [`querystring:${name}`] }
    })
  ),
  ...badQueries.slice(0, 6).map(([query, name]) =>
    define({
      name: `refuses HEAD ?${query}`,
      request: { method: "HEAD", path: `/subscriptions?${query}` },
      expected: { status: 400 },
      also: async (_, api) => expect((await api.list(`?${query}`)).json.details[0].name).toBe(name)
    })
  ),
  ...badRemovals.map(([query, name]) =>
    define<StoredObject>({
      name: `refuses DELETE ?${query}, and removes nothing`,
      given: (api) => api.stored("a", { name: "Ape" }),
      request: { method: "DELETE", path: `/subscriptions?${query}` },
      expected: { status: 400, errno: 107, details: [`querystring:${name}`] },
      also: async (_, api) => expect((await api.list()).json.data).toHaveLength(1)
    })
  ),
  ...[
    ["constructor=5", ""],
    ["__proto__=5", "edcba"],
    ["has_constructor=true", ""]
  ].map(([query, wanted]) =>
    define<ReadonlyArray<StoredObject>>({
      name: `knows no field for ?${query} but those that are stored`,
      given: zoo,
      request: { method: "GET", path: `/subscriptions?${query}` },
      expected: { status: 200 },
      also: (response) => expect(letters(response)).toBe(wanted)
    })
  ),
  define({
    name: "refuses more parameters than a list takes",
    request: { method: "GET", path: `/subscriptions?${"a=1&".repeat(3_000)}` },
    expected: { status: 400, errno: 107, details: ["querystring:null"], message: /32 parameters/ }
  })
]
