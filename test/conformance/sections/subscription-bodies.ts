// Contract 3.1 and 3.2: ids and bodies of subscriptions.
import { expect } from "vitest"
import { keys } from "../api.ts"
import { type Case, define } from "../table.ts"

export const vectors: ReadonlyArray<readonly [endpoint: string, id: string]> = [
  [
    "https://push.example.com/a",
    "12eccec801bb95c808b11cff317fdf759e0a3119b6922d7a9057940d14d3c132"
  ],
  [
    "https://updates.push.services.mozilla.com/wpush/v1/gAAAAABYZNoTAeA9vv-_zHx79",
    "f7023896e08a42254fcbf4ffde1a7b36ce06bc2c857f4286c277221894ce2943"
  ],
  [
    "https://fcm.googleapis.com/fcm/send/abc:def",
    "9a6cf4d347aa7fc6d7dbf0a9b85a7c983fd6b93b3da68fe5a1156aa88ad61c7a"
  ]
]

const badEndpoints: ReadonlyArray<
  readonly [name: string, endpoint: unknown, message: string | RegExp]
> = [
  ["missing", undefined, "data.endpoint in body: Required"],
  ["empty", "", "data.endpoint in body: Required"],
  ["a number", 3, /^data\.endpoint in body: /],
  ["null", null, /^data\.endpoint in body: /],
  ["no URL", "nonsense", "data.endpoint in body: Must be a URL"],
  ["a URL without a host", "https://", "data.endpoint in body: Must be a URL"],
  ["a URL with a space", "https://push.example.com/a b", /Must be a URL/],
  [
    "a URL that only a repair makes one",
    "https:push.example.com/a",
    /begins with https:\/\/push\.example\.com\/$/
  ],
  ["plain http", "http://push.example.com/a", /https/],
  ["another scheme", "ftp://push.example.com/a", /./],
  ["with credentials", "https://user:pass@push.example.com/a", /credentials/],
  ["with empty credentials", "https://@push.example.com/a", /plain form/],
  ["with a fragment", "https://push.example.com/a#b", /fragment/],
  ["an IPv4 address", "https://10.0.0.1/a", /IP address/],
  ["an IPv4 address in disguise", "https://0x7f.1/a", /IP address/],
  ["an IPv4 address as a number", "https://2130706433/a", /IP address/],
  ["an IPv6 address", "https://[::1]/a", /IP address/],
  ["this machine", "https://localhost/a", /./],
  ["in capitals", "HTTPS://PUSH.example.com/a", /plain form/],
  ["with the default port", "https://push.example.com:443/a", /plain form/],
  ["an escaped host", "https://push%2Eexample.com/a", /plain form/],
  ["without a path", "https://push.example.com", /plain form/],
  ["in full-width letters", "https://\uff50ush.example.com/a", /ASCII/],
  ["beyond ASCII", "https://push.example.com/\u00e9", /ASCII/],
  ["with a backslash", "https://push.example.com/\\a", /ASCII/],
  ["on another port", "https://push.example.com:8443/a", /port/],
  ["on a host with a trailing dot", "https://push.example.com./a", /./],
  ["on an unknown host", "https://evil.test/a", /./],
  ["on a host that ends like a known one", "https://evilfcm.googleapis.com.evil.test/a", /./],
  ["longer than 2048 characters", `https://push.example.com/${"a".repeat(2048)}`, /2048/]
]

const offCurve = Buffer.concat([Buffer.from([4]), Buffer.alloc(64, 1)]).toString("base64url")
const hybrid = Buffer.from(keys.p256dh, "base64url")
hybrid[0] = 6

const badKeys: ReadonlyArray<
  readonly [name: string, keys: unknown, details: ReadonlyArray<string>]
> = [
  ["are missing", undefined, ["body:data.keys"]],
  ["are null", null, ["body:data.keys"]],
  ["are a list", [], ["body:data.keys"]],
  ["are empty", {}, ["body:data.keys.auth", "body:data.keys.p256dh"]],
  ["hold an empty auth", { ...keys, auth: "" }, ["body:data.keys.auth"]],
  ["hold a number for auth", { ...keys, auth: 5 }, ["body:data.keys.auth"]],
  ["hold an auth of 4 bytes", { ...keys, auth: "AAAAAA" }, ["body:data.keys.auth"]],
  [
    "hold an auth of 17 bytes",
    { ...keys, auth: Buffer.alloc(17).toString("base64url") },
    ["body:data.keys.auth"]
  ],
  [
    "hold an auth that is no base64",
    { ...keys, auth: "!!!!!!!!!!!!!!!!!!!!!!" },
    ["body:data.keys.auth"]
  ],
  [
    "hold a p256dh of 64 bytes",
    { ...keys, p256dh: Buffer.alloc(64, 4).toString("base64url") },
    ["body:data.keys.p256dh"]
  ],
  ["hold a p256dh off the curve", { ...keys, p256dh: offCurve }, ["body:data.keys.p256dh"]],
  [
    "hold a p256dh in the hybrid form",
    { ...keys, p256dh: hybrid.toString("base64url") },
    ["body:data.keys.p256dh"]
  ],
  ["hold a p256dh that is no base64", { ...keys, p256dh: "?" }, ["body:data.keys.p256dh"]]
]

export const post = (data: unknown) => ({ method: "POST", path: "/subscriptions", body: { data } })

export const subscriptionBodies: ReadonlyArray<Case> = [
  ...vectors.map(([endpoint, id]) =>
    define({
      name: `gives ${JSON.stringify(endpoint)} its id`,
      request: post({ endpoint, keys }),
      expected: { status: 201, body: { data: { id, endpoint } } }
    })
  ),
  ...badEndpoints.map(([name, endpoint, message]) =>
    define({
      name: `refuses an endpoint that is ${name}`,
      request: post({ endpoint, keys }),
      expected: { status: 400, errno: 109, details: ["body:data.endpoint"], message }
    })
  ),
  ...badKeys.map(([name, bad, details]) =>
    define({
      name: `refuses keys that ${name}`,
      request: (api) => post({ ...api.subscription(), keys: bad }),
      expected: { status: 400, errno: 109, details, message: /^data\.keys/ }
    })
  ),
  define({
    name: "takes keys in the other base64 alphabet, padded",
    request: (api) => {
      const standard = (text: string) => Buffer.from(text, "base64url").toString("base64")
      return post({
        ...api.subscription(),
        keys: { auth: standard(keys.auth), p256dh: standard(keys.p256dh) }
      })
    },
    expected: { status: 201 }
  }),
  define({
    name: "stores a new subscription and shows all of it",
    request: (api) => post(api.subscription()),
    expected: (api) => ({
      status: 201,
      headers: { ETag: /^"\d+"$/, "Last-Modified": /GMT$/ },
      body: { data: api.subscription() }
    }),
    also: ({ headers, json }) => {
      expect(Object.keys(json)).toEqual(["data"])
      expect(Object.keys(json.data).sort()).toEqual(["endpoint", "id", "keys", "last_modified"])
      expect(headers.etag).toBe(`"${json.data.last_modified}"`)
      expect(headers["last-modified"]).toBe(new Date(json.data.last_modified).toUTCString())
    }
  }),
  define({
    name: "keeps attributes it does not know, and drops keys it does not know",
    request: (api) =>
      post({
        ...api.subscription("a", { expirationTime: null, device: { os: ["x"] } }),
        keys: { ...keys, other: "x" }
      }),
    expected: { status: 201 },
    also: ({ json: { data } }) => {
      expect(data).toMatchObject({ expirationTime: null, device: { os: ["x"] } })
      expect(data.keys).toEqual(keys)
    }
  }),
  ...(["keys", "data.keys"] as const).map((place) =>
    define({
      name: `judges the keys in data.keys, whatever stands under a name with dots in ${place}`,
      request: (api) => {
        const data = { ...api.subscription(), keys: { auth: "bad", p256dh: "bad" } }
        const dotted = { [`${place}.auth`]: keys.auth, [`${place}.p256dh`]: keys.p256dh }
        return {
          ...post(data),
          body: place === "keys" ? { data: { ...dotted, ...data } } : { ...dotted, data }
        }
      },
      expected: { status: 400, errno: 109 },
      also: ({ json }) =>
        expect(json.details.map(({ name }: { name: string }) => name)).toEqual(
          expect.arrayContaining(["data.keys.auth", "data.keys.p256dh"])
        )
    })
  ),
  define({
    name: "judges the endpoint in data, whatever stands under data.endpoint beside it",
    request: (api) => ({
      ...post(undefined),
      body: {
        "data.endpoint": api.subscription().endpoint,
        data: { endpoint: "https://10.0.0.1/a", keys }
      }
    }),
    expected: { status: 400, errno: 109, details: ["body:", "body:data.endpoint"] }
  })
]
