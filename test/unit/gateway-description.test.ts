// The API description agrees with the tables that it is made of: endpoints, methods, errors.
import { STATUS_CODES } from "node:http"
import { assert, describe, it } from "vitest"
import { endpoints } from "#gateway/endpoints.ts"
import { apiErrors, phraseOf, type Row, reasonPhrase } from "#gateway/http/error-table.ts"
import { groups } from "#gateway/openapi/groups.ts"
import { openApiOf } from "#gateway/openapi/openapi.ts"

interface ResponseDescription {
  readonly content?: Readonly<Record<string, { readonly schema: { readonly $ref?: string } }>>
}

// 405 is the response to methods that the description does not list.
const statuses = [...new Set(Object.values<Row>(apiErrors).map(({ status }) => status))].filter(
  (status) => status !== 405
)

const schemes = { basicauth: { type: "http", scheme: "basic" } } as const
const described = { title: "t", version: "1", rootUrl: "http://localhost/v1", schemes }
// biome-ignore lint/suspicious/noExplicitAny: the test reads many parts of the document
const document = openApiOf(endpoints, described) as any
const operations = Object.entries<
  Record<
    string,
    {
      responses: Record<string, ResponseDescription>
      operationId: string
      tags: string[]
      security: unknown[]
    }
  >
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
    const described = operations
      .flatMap(({ operation }) => Object.keys(operation.responses).map(Number))
      .filter((status) => status >= 400)
    assert.sameMembers([...new Set(described)], statuses)
  })

  it("names every operation once", () => {
    const ids = operations.map(({ operation }) => operation.operationId)
    assert.strictEqual(new Set(ids).size, ids.length)
  })

  it.for(statuses)("names all errors of status %d, and no other", (status) => {
    const { code, errno, error_code } = document.components.schemas[`Error${status}`].properties
    assert.deepEqual([code.type, code.enum, errno.type], ["integer", [status], "integer"])
    const rows = Object.entries<Row>(apiErrors).filter(([, row]) => row.status === status)
    assert.sameMembers(
      error_code.enum,
      rows.map(([each]) => each)
    )
    assert.sameMembers(errno.enum, [...new Set(rows.map(([, row]) => row.errno))])
  })

  it("refers to them from every response but those of heartbeats", () => {
    const found = operations.flatMap(({ operation, path }) =>
      Object.entries(operation.responses)
        .filter(([status]) => Number(status) >= 400)
        .map(([status, { content }]) => [path, status, content?.["application/json"]?.schema.$ref])
    )
    for (const [path, status, ref] of found)
      if (!String(path).endsWith("heartbeat__") || status !== "503")
        assert.strictEqual(ref, `#/components/schemas/Error${status}`, path)
  })

  it("names the header that asks for a secret, where one is made", () => {
    const asks = (operation: object) => JSON.stringify(operation).includes('"name":"Prefer"')
    const asking = operations.filter(({ operation }) => asks(operation))
    assert.sameMembers(
      asking.map(({ method, path }) => `${method} ${path}`),
      ["post /subscriptions", "put /subscriptions/{id}"]
    )
  })

  it("has each operation in one group, which is its tag, and no group has another", () => {
    const ids = operations.map(({ operation }) => operation.operationId)
    assert.sameMembers(
      groups.flatMap((group) => [...group.operations]),
      ids
    )
    for (const { operation } of operations) assert.lengthOf(operation.tags, 1)
  })

  it("says of each operation who may call, also where everybody may", () => {
    const publicOnes = operations.filter(({ operation }) => operation.security.length === 0)
    assert.includeMembers(
      publicOnes.map(({ operation }) => operation.operationId),
      ["get-vapid-public-key", "get-api", "post-batch"]
    )
    for (const { operation } of operations) assert.isArray(operation.security)
  })

  it("names the schemas that generators make types of, and has none that they cannot read", () => {
    const text = JSON.stringify(document)
    for (const [, name] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g))
      assert.property(document.components.schemas, name!)
    assert.notMatch(text, /"(?:if|then|\$defs)":|"NaN"|"allOf":/)
    assert.includeMembers(Object.keys(document.components.schemas), [
      "Subscription",
      "Broadcast",
      "DeclarativePush"
    ])
  })

  it("is JSON, with nothing left out by undefined", () => {
    assert.deepEqual(JSON.parse(JSON.stringify(document)), document)
  })
})

describe("the table of errors", () => {
  it("names each status as the status line does, or what is invalid", () => {
    for (const row of Object.values<Row>(apiErrors)) {
      const code = row.status
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
    for (const { errno, status } of Object.values(apiErrors))
      meanings.set(errno, (meanings.get(errno) ?? new Set()).add(String(status)))
    // 107 is any invalid request, 201 any error of the storage (503, 507).
    for (const [errno, codes] of meanings)
      if (![107, 201].includes(errno)) assert.strictEqual(codes.size, 1, `errno ${errno}`)
  })
})
