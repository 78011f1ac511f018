// Contract 4.4: broadcasts and their progress.
import { expect } from "vitest"
import type { Api, Request } from "../api.ts"
import { type Case, define, type Expected } from "../table.ts"

/** The 202 of a broadcast, for toEqual and toMatchObject. */
export const accepted = {
  warning: expect.stringContaining("Firefox on Android"),
  body: {
    code: 202,
    message: "Accepted",
    id: expect.stringMatching(/^\d+$/),
    url: expect.stringMatching(/^http.*\/broadcasts\/\d+$/),
    // Most cases publish on a channel that nobody is registered to.
    warnings: expect.any(Array)
  }
}

export const publish = (
  api: Api,
  body?: unknown,
  headers: Record<string, string> = {},
  channel = api.channel
): Request => ({
  method: "POST",
  path: `/channels/${channel}`,
  as: api.target.publisher,
  headers,
  ...(body === undefined ? {} : { body })
})

const located = (api: Api): Expected => ({
  status: 202,
  body: accepted.body,
  headers: { Location: new RegExp(`^${api.root}/channels/${api.channel}/broadcasts/[0-9]+$`) }
})

const bodies: ReadonlyArray<readonly [name: string, body: unknown]> = [
  ["nothing", undefined],
  ["an empty object", {}],
  ["empty data", { data: {} }],
  ["data", { data: { title: "Grüße", n: 1.5, deep: { list: [null, true] } } }],
  ["data with a timestamp", { data: { last_modified: 123 } }],
  ["variants", { data: { a: 1 }, data_by_locale: { de: { a: 2 }, "zh-Hant-TW": {} } }],
  ["variants alone", { data_by_locale: { de: { a: 2 } } }]
]

const badBodies: ReadonlyArray<
  readonly [name: string, body: unknown, details: ReadonlyArray<string>]
> = [
  ["data that is null", { data: null }, ["body:data"]],
  ["data that is a list", { data: [1] }, ["body:data"]],
  ["data that is a text", { data: "x" }, ["body:data"]],
  ["a variant that is a text", { data_by_locale: { de: "x" } }, ["body:data_by_locale.de"]],
  ["a variant of no language", { data_by_locale: { "d e": {} } }, ["body:data_by_locale.d e"]],
  ["two variants of a language", { data_by_locale: { de: {}, DE: {} } }, ["body:data_by_locale"]],
  [
    "21 variants",
    { data_by_locale: Object.fromEntries([..."abcdefghijklmnopqrstu"].map((c) => [`d${c}`, {}])) },
    ["body:data_by_locale"]
  ],
  ["an empty name", { name: "" }, ["body:name"]],
  ["a name of 201 characters", { name: "x".repeat(201) }, ["body:name"]],
  ["a name of two lines", { name: "a\nb" }, ["body:name"]],
  ["half a character as its name", '{"name": "\\ud83d"}', ["body:name"]],
  ["a test, which a channel cannot be", { test: true }, ["body:"]],
  ["another key", { other: 1 }, ["body:"]],
  ["a list", [], ["body:"]],
  ["nonsense", "{nonsense", ["body:", "body:"]]
]

const badHeaders: ReadonlyArray<readonly [name: string, value: string]> = [
  ["TTL", "-1"],
  ["TTL", "1.5"],
  ["TTL", "soon"],
  ["TTL", "2419201"],
  ["Urgency", "now"],
  ["Topic", "with space"],
  ["Topic", "x".repeat(33)],
  ["Idempotency-Key", "x".repeat(256)],
  ["Idempotency-Key", ""]
]

export const locationOf = async (
  api: Api,
  body?: unknown,
  headers: Record<string, string> = {}
): Promise<string> => {
  const { headers: answered, status, text } = await api.send(publish(api, body, headers))
  if (status !== 202) throw new Error(`${status}: ${text}`)
  return (answered["location"] as string).slice(api.target.origin.length)
}

/** Payloads that no request with a push takes; `more` are further members of its body. */
export const badPayloads = (
  name: string,
  send: (api: Api, body: unknown, headers?: Record<string, string>) => Request,
  more: (api: Api) => object = () => ({})
): ReadonlyArray<Case> => [
  define({
    name: `refuses ${name} that is not JSON`,
    request: (api) => send(api, "text", { "content-type": "text/plain" }),
    expected: { status: 415, errno: 107 }
  }),
  define({
    name: `refuses ${name} that fits into no push`,
    request: (api) => send(api, { data: { text: "x".repeat(3_990) }, ...more(api) }),
    expected: { status: 413, error: "payload-too-large" }
  })
]

export const broadcasts: ReadonlyArray<Case> = [
  ...bodies.map(([name, body]) =>
    define({
      name: `accepts a broadcast of ${name}`,
      request: (api) => publish(api, body),
      expected: (api) => ({ ...located(api), exactly: accepted.body }),
      also: ({ headers, json }) => {
        expect(json.url).toBe(headers["location"])
        expect(json.url.split("/").at(-1)).toBe(json.id)
      }
    })
  ),
  define({
    name: "accepts a broadcast without a body, whatever type it claims",
    request: (api) => publish(api, "", { "content-type": "text/plain" }),
    expected: located
  }),
  define({
    name: "accepts TTL, Urgency and Topic",
    request: (api) =>
      publish(api, { data: { a: 1 } }, { TTL: "0", Urgency: "very-low", Topic: "A_z-9" }),
    expected: located
  }),
  ...badBodies.map(([name, body, details]) =>
    define({
      name: `refuses a broadcast of ${name}`,
      request: (api) => publish(api, body, { "content-type": "application/json" }),
      expected: { status: 400, errno: 109, details }
    })
  ),
  ...badHeaders.map(([name, value]) =>
    define({
      name: `refuses a broadcast with ${name}: ${value.slice(0, 12)}`,
      request: (api) => publish(api, { data: {} }, { [name]: value }),
      expected: { status: 400, errno: 107, details: [`header:${name}`] }
    })
  ),
  ...badPayloads("a broadcast", publish),
  define({
    name: "refuses a broadcast with a variant that fits into no push",
    request: (api) => publish(api, { data_by_locale: { de: { text: "x".repeat(3_990) } } }),
    expected: { status: 413, error: "payload-too-large" }
  }),
  define({
    name: "accepts the largest broadcast that fits",
    request: (api) => publish(api, { data: { t: "x".repeat(3_993 - '{"t":""}'.length) } }),
    expected: located
  }),
  // Headers of Java's HttpClient, of curl --http2, and of a proxy that expects WebSockets.
  ...["h2c", "websocket"].map((protocol) =>
    define({
      name: `reads the body of a broadcast that offers to speak ${protocol}`,
      request: (api) => publish(api, "{nonsense", { connection: "upgrade", upgrade: protocol }),
      expected: { status: 400, errno: 109, details: ["body:", "body:"] }
    })
  ),
  define({
    name: "reads a body in chunks that offers to speak h2c",
    request: (api) =>
      publish(api, '{"data":{"a":1}}', {
        connection: "upgrade",
        upgrade: "h2c",
        "transfer-encoding": "chunked"
      }),
    expected: located
  }),
  define({
    name: "lets only publishers broadcast",
    request: (api) => ({ ...publish(api, { data: {} }), as: api.me }),
    expected: { status: 403, errno: 121 }
  }),
  define({
    name: "says so before it looks at the body",
    request: (api) => ({ ...publish(api, "{nonsense"), as: api.me }),
    expected: { status: 403 }
  }),
  define({
    name: "lets nobody broadcast",
    request: (api) => ({ ...publish(api, {}), as: null }),
    expected: { status: 401, errno: 104 }
  }),
  define({
    name: "refuses a broadcast to a channel of 256 bytes",
    request: (api) => publish(api, {}, {}, "x".repeat(256)),
    expected: { status: 400, errno: 107, details: ["path:null"] }
  }),
  define<string>({
    name: "takes the same key for the same broadcast",
    given: (api) =>
      locationOf(api, { data: { b: 1, a: 2 } }, { "Idempotency-Key": api.channel, TTL: "60" }),
    request: (api) =>
      publish(api, { data: { a: 2, b: 1 } }, { "Idempotency-Key": api.channel, TTL: "60" }),
    expected: located,
    also: ({ headers }, api, location) =>
      expect(headers["location"]).toBe(api.target.origin + location)
  }),
  ...[
    ["another payload", { data: { a: 2 } }, { TTL: "60" }],
    ["another variant", { data: { a: 1 }, data_by_locale: { de: {} } }, { TTL: "60" }],
    ["another TTL", { data: { a: 1 } }, { TTL: "61" }],
    ["no TTL", { data: { a: 1 } }, {}]
  ].map(([name, body, headers]) =>
    define({
      name: `refuses a key that was used for ${name}`,
      given: (api) =>
        locationOf(api, { data: { a: 1 } }, { "Idempotency-Key": api.channel, TTL: "60" }),
      request: (api) =>
        publish(api, body, {
          "Idempotency-Key": api.channel,
          ...(headers as Record<string, string>)
        }),
      expected: {
        status: 400,
        errno: 107,
        details: ["header:Idempotency-Key"],
        message: /used for another broadcast/
      }
    })
  ),
  define<string>({
    name: "takes the same key on another channel for another broadcast",
    given: (api) => locationOf(api, {}, { "Idempotency-Key": api.channel }),
    request: (api) =>
      publish(api, { data: { other: 1 } }, { "Idempotency-Key": api.channel }, `${api.channel}x`),
    expected: { status: 202 }
  }),
  define<string>({
    name: "makes two broadcasts of two requests without a key",
    given: (api) => locationOf(api, {}),
    request: (api) => publish(api, {}),
    expected: located,
    also: ({ headers }, api, location) =>
      expect(headers["location"]).not.toBe(api.target.origin + location)
  })
]
