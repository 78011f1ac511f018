// src/gateway/README.md and the contract agree with the code: every operation, every error, and
// nothing else.
import { assert, describe, it } from "vitest"
import { endpoints } from "#gateway/endpoints.ts"
import { apiErrors } from "#gateway/http/error-table.ts"
import { documentedErrors, rowsOf, spansOf, textOf } from "../support/documents.ts"

const text = textOf("src/gateway/README.md")

/** `PUT`, `DELETE /x` are two operations on /x; `GET /x`, `/y` are one on each. */
const operationsOf = (cell: string): ReadonlyArray<string> => {
  const spans = spansOf(cell).map((span) => /^([A-Z]*) ?(.*)$/.exec(span)!.slice(1))
  return spans.map(([method, path], i) => {
    const verb = method || spans.slice(0, i).findLast(([each]) => each !== "")?.[0]
    return `${verb} ${path || spans.slice(i).find(([, each]) => each !== "")?.[1]}`
  })
}

describe("the README of the gateway", () => {
  it("lists every operation, and no other", () => {
    const offered = endpoints.flatMap(({ operations, path }) =>
      Object.keys(operations).map((method) => `${method} ${path.replace(/:\w+/g, "{}")}`)
    )
    const listed = rowsOf(text, "Request").flatMap(([cell]) => operationsOf(cell!))
    assert.sameMembers(
      listed.map((each) => each.replace(/\{\w+\}/g, "{}")),
      offered
    )
  })
})

describe("the table of errors", () => {
  it.for(["src/gateway/README.md", "test/conformance/README.md"])("is that of %s", (path) => {
    const known = Object.entries(apiErrors).map(
      ([code, { errno, status }]) => `${status} ${errno} ${code}`
    )
    assert.sameMembers([...documentedErrors(path)], known)
  })
})
