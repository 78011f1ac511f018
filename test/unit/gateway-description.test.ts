// The API description agrees with the tables that it is made of: endpoints, methods, errors.
import { STATUS_CODES } from "node:http"
import { assert, describe, it } from "vitest"
import { endpoints } from "#gateway/endpoints.ts"
import { apiErrors, phraseOf, reasonPhrase, wireErrors } from "#gateway/http/error-table.ts"
import { openApiOf } from "#gateway/openapi/openapi.ts"

const schemes = { basicauth: { type: "http", scheme: "basic" } } as const
const described = { title: "t", version: "1", rootUrl: "http://localhost/v1", schemes }
// biome-ignore lint/suspicious/noExplicitAny: the test reads many parts of the document
const document = openApiOf(endpoints, described) as any
const operations = Object.entries<
  Record<string, { responses: Record<string, unknown>; operationId: string }>
>(document.paths).flatMap(([path, item]) =>
  Object.entries(item)
    .filter(([method]) => method !== "parameters")
    .map(([method, operation]) => ({ path, method, operation }))
)

describe("the description", () => {
  it("has every endpoint with the methods that Allow names", () => {
    for (const endpoint of endpoints) {
      const item = document.paths[endpoint.path.replace(/:(\w+)/g, "{$1}")]
      const described = Object.keys(item).filter((key) => key !== "parameters")
      const allowed = endpoint.allow
        .filter((method) => method !== "HEAD" && method !== "OPTIONS")
        .map((method) => method.toLowerCase())
      assert.sameMembers(described, allowed, endpoint.path)
      assert.strictEqual(endpoint.allow.includes("HEAD"), allowed.includes("get"), endpoint.path)
      assert.include(endpoint.allow, "OPTIONS")
    }
  })

  it("has every status of the table of errors, and no other", () => {
    const statuses = new Set(
      operations
        .flatMap(({ operation }) => Object.keys(operation.responses).map(Number))
        .filter((status) => status >= 400)
    )
    // 405 is the response to methods that the description does not list.
    const possible = new Set(
      Object.values(apiErrors)
        .map(({ code }): number => code)
        .filter((code) => code !== 405)
    )
    assert.sameMembers([...statuses], [...possible])
  })

  it("names every operation once", () => {
    const ids = operations.map(({ operation }) => operation.operationId)
    assert.strictEqual(new Set(ids).size, ids.length)
  })

  it("says that the status and errno of an error are integers, and which errnos there are", () => {
    const { code, errno } = document.components.schemas.Error.properties
    assert.deepEqual(code, { type: "integer", description: "The HTTP status" })
    assert.strictEqual(errno.type, "integer")
    assert.sameMembers(errno.enum, [
      ...new Set(Object.values(apiErrors).map((row): number => row.errno))
    ])
  })

  it("names the header that asks for a secret, where one is made", () => {
    const asks = (operation: object) => JSON.stringify(operation).includes('"name":"Prefer"')
    const asking = operations.filter(({ operation }) => asks(operation))
    assert.sameMembers(
      asking.map(({ method, path }) => `${method} ${path}`),
      ["post /subscriptions", "put /subscriptions/{id}"]
    )
  })

  it("is JSON, with nothing left out by undefined", () => {
    assert.deepEqual(JSON.parse(JSON.stringify(document)), document)
  })
})

describe("the table of errors", () => {
  it("names each status as the status line does, or what is invalid", () => {
    const rows = [...Object.values(apiErrors), ...Object.values(wireErrors)]
    for (const row of rows) {
      const { code } = row
      const error = phraseOf(row)
      if (error !== "Invalid parameters" && error !== "Invalid Auth Token")
        assert.strictEqual(error, reasonPhrase(code))
      // RFC 9110 section 15.5.14 renamed 413; Node knows the other names.
      assert.strictEqual(
        reasonPhrase(code),
        code === 413 ? "Content Too Large" : STATUS_CODES[code]
      )
    }
  })

  it("gives an errno one meaning", () => {
    const meanings = new Map<number, Set<string>>()
    for (const { code, errno } of Object.values(apiErrors))
      meanings.set(errno, (meanings.get(errno) ?? new Set()).add(String(code)))
    // 107 is any invalid request, 201 any error of the storage (503, 507).
    for (const [errno, codes] of meanings)
      if (![107, 201].includes(errno)) assert.strictEqual(codes.size, 1, `errno ${errno}`)
  })
})
