// Contract 4.6: accepting broadcasts to several channels and to users. The publisher of the tests
// may publish on every channel and has the right `users`.
import { expect } from "vitest"
import type { Api, Request } from "../api.ts"
import { type Case, define, type Expected } from "../table.ts"
import { accepted, badPayloads, publish as publishOnChannel } from "./broadcasts.ts"

export const publish = (
  api: Api,
  body: unknown,
  headers: Record<string, string> = {}
): Request => ({
  method: "POST",
  path: "/broadcasts",
  as: api.target.publisher,
  headers,
  body
})

/** To the channel and the user of the case. */
const both = (api: Api) => ({ channels: [api.channel], users: [api.userId()] })

const located = (api: Api): Expected => ({
  status: 202,
  exactly: accepted.body,
  headers: { Location: new RegExp(`^${api.root}/broadcasts/[0-9]+$`) }
})

/** The path of a broadcast that the publisher accepted. */
export const acceptedAt = async (
  api: Api,
  body: unknown = { data: { a: 1 }, to: both(api) },
  headers?: Record<string, string>
): Promise<string> => {
  const { headers: given, status, text } = await api.send(publish(api, body, headers))
  if (status !== 202) throw new Error(`${status}: ${text}`)
  return (given["location"] as string).slice(api.target.origin.length)
}

const repeated = (count: number, item: string) => Array.from({ length: count }, () => item)

const badBodies: ReadonlyArray<
  readonly [name: string, body: (api: Api) => unknown, details: ReadonlyArray<string>]
> = [
  ["no recipients", () => ({ data: {} }), ["body:to"]],
  ["nobody", () => ({ to: { channels: [], users: [], except_users: [] } }), ["body:to"]],
  ["only excepted users", (api) => ({ to: { except_users: [api.userId()] } }), ["body:to"]],
  ["a list of recipients", () => ({ to: ["news"] }), ["body:to"]],
  ["a channel that is no list", () => ({ to: { channels: "news" } }), ["body:to.channels"]],
  ["a channel that is no text", () => ({ to: { channels: [1] } }), ["body:to.channels.0"]],
  ["another key of recipients", () => ({ to: { groups: ["x"] } }), ["body:to"]],
  ["a test for a channel", (api) => ({ to: both(api), test: true }), ["body:to.channels"]],
  [
    "a test for 21 users",
    (api) => ({ to: { users: repeated(21, api.userId()) }, test: true }),
    ["body:to.users"]
  ],
  ["a test that is a text", (api) => ({ to: both(api), test: "true" }), ["body:test"]],
  ["another key", (api) => ({ to: both(api), extra: 1 }), ["body:"]],
  ["a dry run that is a text", (api) => ({ to: both(api), dry_run: "true" }), ["body:dry_run"]],
  ["data that is a list", (api) => ({ to: both(api), data: [] }), ["body:data"]],
  ["101 channels", () => ({ to: { channels: repeated(101, "a") } }), ["body:to.channels"]],
  ["1,001 users", (api) => ({ to: { users: repeated(1_001, api.userId()) } }), ["body:to.users"]],
  [
    "1,001 excepted users",
    (api) => ({ to: { ...both(api), except_users: repeated(1_001, api.userId()) } }),
    ["body:to.except_users"]
  ],
  [
    "impossible names and ids",
    (api) => ({
      to: {
        channels: ["", "ok", "x".repeat(256)],
        users: [api.userId(), "nobody", "other:abc", "", "pseudonym:abc"],
        except_users: ["token:abc", `${api.userId().split(":")[0]}:a\u0000b`]
      }
    }),
    [
      "body:to.channels.0",
      "body:to.channels.2",
      "body:to.except_users.0",
      "body:to.except_users.1",
      "body:to.users.1",
      "body:to.users.2",
      "body:to.users.3",
      "body:to.users.4"
    ]
  ],
  [
    "100,000 channels that are no texts, and names one error",
    () => ({ to: { channels: Array.from({ length: 100_000 }, () => 1) } }),
    ["body:to.channels.0"]
  ],
  [
    "1,000 impossible ids, and names 100",
    () => ({ to: { users: repeated(1_000, "x") } }),
    Array.from({ length: 1_000 }, (_, i) => `body:to.users.${i}`)
      .sort()
      .slice(0, 100)
  ]
]

/** Recipients to whom the user of a case may not send. */
const foreign: ReadonlyArray<readonly [name: string, to: (api: Api) => object]> = [
  ["a channel", ({ channel }) => ({ channels: [channel] })],
  ["a user, not even themselves", (api) => ({ users: [api.userId()] })],
  ["both", both]
]

const withKey = ({ channel }: Api) => ({ "Idempotency-Key": channel, TTL: "60" })

export const direct: ReadonlyArray<Case> = [
  define({
    name: "warns of those channels that nobody is registered to",
    given: (api) => api.registered(),
    request: (api) => {
      const channels = [api.channel, `${api.channel}-x`, `${api.channel}-y`]
      return publish(api, { to: { channels, users: [api.userId()] } })
    },
    expected: ({ channel }) => ({
      status: 202,
      body: {
        warnings: ["x", "y"].map((end) => `Nobody is registered to the channel ${channel}-${end}`)
      }
    }),
    also: async (_, api) => {
      const warningsOf = async (channel: string) =>
        (await api.send(publishOnChannel(api, {}, {}, channel))).json.warnings
      expect(await warningsOf(api.channel)).toEqual([])
      expect(await warningsOf(`${api.channel}-x`)).toHaveLength(1)
    }
  }),
  ...(
    [
      ["several channels", ({ channel }) => ({ channels: [channel, "a.b>", "*"] })],
      ["a user", (api) => ({ users: [api.userId()] })],
      [
        "both, repeated",
        (api) => ({ channels: repeated(3, api.channel), users: repeated(9, api.userId()) })
      ],
      [
        "a channel, except a user",
        (api) => ({ channels: [api.channel], except_users: [api.userId()] })
      ],
      ["1,000 users", (api) => ({ users: repeated(1_000, api.userId()) })]
    ] as ReadonlyArray<readonly [name: string, to: (api: Api) => object]>
  ).map(([name, to]) =>
    define({
      name: `accepts a broadcast to ${name}`,
      request: (api) => publish(api, { data: { a: 1 }, to: to(api) }, { TTL: "5", Topic: "t" }),
      expected: located
    })
  ),
  ...badBodies.map(([name, body, details]) =>
    define({
      name: `refuses a broadcast to recipients with ${name}`,
      request: (api) => publish(api, body(api)),
      expected: { status: 400, errno: 109, details }
    })
  ),
  define({
    name: "refuses a broadcast to recipients without a body",
    request: (api) => ({ method: "POST", path: "/broadcasts", as: api.target.publisher }),
    expected: { status: 400, errno: 109, details: ["body:to"], message: "to in body: Required" }
  }),
  ...badPayloads("a broadcast to recipients", publish, (api) => ({ to: both(api) })),
  define({
    name: "refuses a body of more than 256 KiB",
    request: (api) => publish(api, { data: { text: "x".repeat(262_144) }, to: both(api) }),
    expected: { status: 413, error: "body-too-large" }
  }),
  define({
    name: "lists what is wrong with headers and recipients together",
    request: (api) => publish(api, { to: {} }, { TTL: "soon" }),
    expected: { status: 400, details: ["header:TTL", "body:to"] }
  }),
  ...foreign.flatMap(([name, to]) => [
    define({
      name: `lets no user send to ${name} without the right`,
      request: (api) => ({ ...publish(api, { data: {}, to: to(api) }), as: api.me }),
      expected: { status: 403, errno: 121 }
    }),
    define({
      name: `counts for no user without the right whom a broadcast to ${name} would reach`,
      request: (api) => ({ ...publish(api, { to: to(api), dry_run: true }), as: api.me }),
      expected: { status: 403, errno: 121 }
    })
  ]),
  define({
    name: "lets nobody send to recipients",
    request: (api) => ({ ...publish(api, { to: both(api) }), as: null }),
    expected: { status: 401, errno: 104 }
  }),
  define<string>({
    name: "takes the same key for the same recipients, in whatever order",
    given: (api) => {
      const users = [api.userId(), api.userId(`${api.me}2`)]
      const to = { channels: ["a", api.channel], users }
      return acceptedAt(api, { data: { a: 1 }, to }, withKey(api))
    },
    request: (api) => {
      const users = [api.userId(`${api.me}2`), api.userId(), api.userId()]
      return publish(
        api,
        { to: { users, channels: [api.channel, "a"] }, data: { a: 1 } },
        withKey(api)
      )
    },
    expected: located,
    also: ({ headers }, api, path) => expect(headers["location"]).toBe(api.target.origin + path)
  }),
  ...(
    [
      ["other users", (api) => ({ data: { a: 1 }, to: { channels: [api.channel] } })],
      [
        "an excepted user",
        (api) => ({ data: { a: 1 }, to: { channels: [api.channel], except_users: [api.userId()] } })
      ],
      ["another payload", (api) => ({ data: { a: 2 }, to: both(api) })],
      ["another name", (api) => ({ data: { a: 1 }, to: both(api), name: "b" })]
    ] as ReadonlyArray<readonly [name: string, body: (api: Api) => unknown]>
  ).map(([name, body]) =>
    define({
      name: `refuses a key that was used for recipients with ${name}`,
      given: (api) => acceptedAt(api, undefined, withKey(api)),
      request: (api) => publish(api, body(api), withKey(api)),
      expected: { status: 400, errno: 107, details: ["header:Idempotency-Key"] }
    })
  ),
  define<string>({
    name: "takes a key of a channel for another broadcast to recipients",
    given: async (api) => {
      const { headers } = await api.send(publishOnChannel(api, {}, withKey(api)))
      return String(headers["location"])
    },
    request: (api) => publish(api, { to: { channels: [api.channel] } }, withKey(api)),
    expected: located,
    also: ({ headers }, _, location) =>
      expect(headers["location"]?.split("/").at(-1)).not.toBe(location.split("/").at(-1))
  })
]
