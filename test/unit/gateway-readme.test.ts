// src/gateway/README.md agrees with the code: every operation, every error, and nothing else.
import { assert, describe, it } from "vitest"
import { endpoints } from "#gateway/endpoints.ts"
import { apiErrors, wireErrors } from "#gateway/http/error-table.ts"
import { spansOf, textOf } from "../support/documents.ts"

const text = textOf("src/gateway/README.md")

/** The cells of the table with this first heading. */
const rowsOf = (heading: string): ReadonlyArray<ReadonlyArray<string>> => {
  const table = text.split("\n\n").find((part) => part.startsWith(`| ${heading} |`)) ?? ""
  const rows = table.trimEnd().split("\n").slice(2)
  assert.isNotEmpty(rows)
  return rows.map((row) => row.split("|").slice(1, -1))
}

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
    const listed = rowsOf("Request").flatMap(([cell]) => operationsOf(cell!))
    assert.sameMembers(
      listed.map((each) => each.replace(/\{\w+\}/g, "{}")),
      offered
    )
  })

  it("lists every error with its errno and status, and no other", () => {
    const listed = rowsOf("errno").flatMap(([errno, status, names]) =>
      spansOf(names!).map((name) => `${Number(errno)} ${Number(status)} ${name}`)
    )
    const known = Object.entries({ ...apiErrors, ...wireErrors }).map(
      ([name, { code, errno }]) => `${errno} ${code} ${name}`
    )
    assert.sameMembers(listed, known)
  })
})
