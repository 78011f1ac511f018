// Random requests, valid and invalid ones, made from the API description. No response may be an
// error of the server or undescribed. Not sent: tests of subscriptions and streams of events.
import fc from "fast-check"
import { expect } from "vitest"
import { Api, keys, type Request, type Target } from "./api.ts"
import { type Schema, undescribed, withoutRefs } from "./described.ts"
import { withAllowedEndpoint } from "./examples.ts"

const concurrency = 8

interface Operation {
  readonly method: string
  readonly path: string
  readonly parameters: ReadonlyArray<{
    readonly in: string
    readonly name: string
    readonly schema: Schema
  }>
  readonly body: Schema | undefined
  readonly example: unknown
  readonly responses: Parameters<typeof undescribed>[1]["responses"]
}

// biome-ignore lint/suspicious/noExplicitAny: the document has any shape
type Loose = any

const operationsOf = (document: Loose): ReadonlyArray<Operation> =>
  Object.entries<Record<string, Loose>>(document.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([method]) => method !== "parameters")
      .map(([method, operation]) => ({
        method: method.toUpperCase(),
        path,
        parameters: [...(item["parameters"] ?? []), ...(operation.parameters ?? [])],
        body: operation.requestBody?.content["application/json"].schema,
        example: operation.requestBody?.content["application/json"].example,
        responses: operation.responses
      }))
  )

const anything = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.string({ unit: "binary", maxLength: 12 })
)

/** Random values that match a schema. */
const sound = (schema: Schema): fc.Arbitrary<unknown> => {
  if (Array.isArray(schema["enum"]))
    return fc.constantFrom(...(schema["enum"] as ReadonlyArray<unknown>))
  if (Array.isArray(schema["anyOf"]))
    return fc.oneof(...(schema["anyOf"] as ReadonlyArray<Schema>).map(sound))
  if (typeof schema["pattern"] === "string") return fc.stringMatching(new RegExp(schema["pattern"]))
  switch (schema["type"]) {
    case "integer":
      return fc.integer({ min: 0, max: 2_000_000 })
    case "string":
      return fc.string({
        unit: "grapheme",
        minLength: Number(schema["minLength"] ?? 0),
        maxLength: Math.min(Number(schema["maxLength"] ?? 20), 20)
      })
    case "array":
      return fc.array(sound(schema["items"] as Schema), { maxLength: 3 })
    case "object": {
      const properties = Object.entries((schema["properties"] ?? {}) as Record<string, Schema>)
      const model = Object.fromEntries(properties.map(([name, each]) => [name, sound(each)]))
      const object = fc.record(model, { requiredKeys: (schema["required"] ?? []) as Array<string> })
      return schema["additionalProperties"] === false
        ? object
        : fc
            .tuple(fc.dictionary(fc.string({ maxLength: 5 }), anything, { maxKeys: 2 }), object)
            .map(([more, own]) => ({ ...more, ...(own as object) }))
    }
    default:
      return anything
  }
}

/** Often an example, so that requests share objects; sometimes any other value. */
const mostly = (
  schema: Schema,
  examples = (schema["examples"] ?? []) as ReadonlyArray<unknown>
): fc.Arbitrary<unknown> =>
  fc.oneof(
    { arbitrary: sound(schema), weight: 9 },
    ...examples.map((example) => ({ arbitrary: fc.constant(example), weight: 30 })),
    {
      arbitrary: anything,
      weight: 1
    }
  )

const subscription = (pushOrigin: string) =>
  fc.record({
    data: fc.record(
      {
        endpoint: fc.nat(30).map((n) => `${pushOrigin}/${n}`),
        keys: fc.constant(keys),
        extra: anything
      },
      { requiredKeys: ["endpoint", "keys"] }
    )
  })

const textOf = (value: unknown): string =>
  typeof value === "string" ? value : JSON.stringify(value)
/** Characters that a header may contain. */
const headerText = (value: unknown): string => textOf(value).replace(/[^\x20-\x7e]/g, "")
const segment = (value: unknown): string => encodeURIComponent(textOf(value).toWellFormed()) || "x"

/** Mostly none; else a text in the scheme of the policy, or in another one. */
const wrongCredentials = ({ login }: Target): fc.Arbitrary<Readonly<Record<string, string>>> => {
  const schemes = fc.constantFrom(login.challenge.split(" ")[0]!, "Bearer", "Basic", "")
  const texts = fc.string({ unit: "binary-ascii", maxLength: 60 }).map(headerText)
  const wrong = fc.tuple(schemes, texts).map((parts) => ({ authorization: parts.join(" ") }))
  return fc.oneof(fc.constant({}), wrong)
}

const requestOf = (
  { body, example, method, parameters, path }: Operation,
  api: Api
): fc.Arbitrary<Request> => {
  const arbitraryOf = (chosen: Operation["parameters"]) =>
    fc.record(
      Object.fromEntries(
        chosen.map(({ in: place, name, schema }) => [`${place} ${name}`, mostly(schema)])
      )
    )
  const optional = parameters.filter((parameter) => parameter.in !== "path")
  const required = parameters.filter((parameter) => parameter.in === "path")
  // Few parameters at a time: among many, one is nearly always invalid.
  const given = fc
    .oneof(fc.constant([]), fc.subarray([...optional], { maxLength: Math.min(2, optional.length) }))
    .chain((chosen) => arbitraryOf([...required, ...chosen]))
  const bodies =
    body === undefined
      ? fc.constant(undefined)
      : fc.oneof(
          mostly(body, [example]),
          path === "/subscriptions" ? subscription(api.target.pushOrigin) : mostly(body)
        )
  const callers = fc.constantFrom<string | null>(api.me, api.me, api.target.publisher, null)
  const parts = fc.tuple(given, bodies, callers, fc.boolean(), wrongCredentials(api.target))
  return parts.map(([values, content, as, head, wrong]) => {
    const of = (place: string) =>
      Object.entries(values as Record<string, unknown>)
        .filter(([key]) => key.startsWith(`${place} `))
        .map(([key, value]) => [key.slice(place.length + 1), value] as const)
    const filled = of("path").reduce(
      (text, [name, value]) => text.replace(`{${name}}`, segment(value)),
      path
    )
    const query = of("query").map(([name, value]) => `${name}=${segment(value)}`)
    const parameters = of("header").map(([name, value]) => [name, headerText(value)])
    const headers = { ...Object.fromEntries(parameters), ...(as === null ? wrong : {}) }
    return {
      method: method === "GET" && head ? "HEAD" : method,
      path: query.length === 0 ? filled : `${filled}?${query.join("&")}`,
      as,
      headers: content === undefined ? headers : { "content-type": "application/json", ...headers },
      ...(content === undefined ? {} : { body: JSON.stringify(content) })
    }
  })
}

type Sent = { readonly operation: Operation; readonly request: Request }

/** Sends a request, checks the response, and returns method, path and status as a text. */
const checked = async ({ operation, request }: Sent, api: Api): Promise<string> => {
  const response = await api.send(request)
  const about = `${JSON.stringify(request)} -> ${response.status} ${response.text.slice(0, 500)}`
  const mayFail = !api.target.isWhole && request.path === "/__heartbeat__"
  if (!mayFail) expect(response.status, about).toBeLessThan(500)
  expect(undescribed(response, operation, request.method), about).toBeUndefined()
  return `${request.method} ${operation.path} ${response.status}`
}

/** Some requests must succeed: otherwise the others prove little. */
const successes = [
  "POST /subscriptions 201",
  "GET /subscriptions 200",
  "DELETE /subscriptions 200",
  "PUT /subscriptions/{id} 201",
  "GET /channels/{channel} 200",
  "POST /batch 200",
  "POST /channels/{channel} 202",
  "POST /broadcasts 202"
]

/** Sends so many random requests, and checks their responses. */
export const sendAny = async (target: Target, requests: number): Promise<void> => {
  const api = new Api(target)
  const document = withAllowedEndpoint(
    withoutRefs((await api.send({ method: "GET", path: "/__api__" })).json) as Loose,
    target
  )
  // The server delivers nothing: each test of a subscription would wait for 10 s, and the events of
  // a broadcast would never end.
  const operations = operationsOf(document).filter(({ path }) => !/\/(test|events)$/.test(path))
  const often = operations.filter(({ method, path }) =>
    successes.some((name) => name.startsWith(`${method} ${path} `))
  )
  const cases = fc
    .constantFrom(...operations, ...often, ...often)
    .chain((operation) => requestOf(operation, api).map((request) => ({ operation, request })))
  const seen = new Set<string>()
  const property = fc.asyncProperty(
    fc.array(cases, { minLength: concurrency, maxLength: concurrency }),
    async (batch) => {
      const all = batch.map((each) => checked(each, api))
      for (const name of await Promise.all(all)) seen.add(name)
    }
  )
  await fc.assert(property, { numRuns: Math.ceil(requests / concurrency), endOnFailure: true })
  expect([...seen]).toEqual(expect.arrayContaining(successes))
}
