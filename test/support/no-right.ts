// Requests of people who may neither publish nor name users, as a property test draws them: every
// method, odd paths, smuggled identities, forged tokens, and batches within batches.
import fc from "fast-check"
import { SignJWT } from "jose"
import { basic } from "./client.ts"

export const siteSecret = "a_secret_that_the_site_shares_with_Bellcast"
export const proxySecret = "a_secret_that_only_the_proxy_in_front_knows"

/** Principals that may publish: nobody on `elsewhere` may on another channel. */
export const rights = [
  ...["signed:publisher", "proxy:publisher", "group:proxy:editors", "group:acme:editors"],
  ...["news*=acme:editor", "elsewhere=acme:scribe"]
].join(" ")

/** The principal that may name users. */
export const usersRight = "signed:publisher"

/** A user whom the requests name, without the right to. */
export const victim = "acme:victim"

type Headers = Readonly<Record<string, string>>

export const behindProxy = (user: string, groups = ""): Headers => ({
  "x-proxy-secret": proxySecret,
  "x-forwarded-user": user,
  "x-forwarded-groups": groups
})

export interface Forged {
  readonly sub?: string
  readonly aud?: string
  readonly secret?: string
  /** Seconds from now. */
  readonly exp?: number
}

export const tokenOf = ({
  sub = "publisher",
  aud = "bellcast",
  secret = siteSecret,
  exp = 3_600
}: Forged) =>
  new SignJWT({ sub, aud })
    .setProtectedHeader({ alg: "HS256" })
    .setExpirationTime(Math.floor(Date.now() / 1000) + exp)
    .sign(new TextEncoder().encode(secret))

const unsigned = (token: string) => {
  const head = Buffer.from('{"alg":"none"}').toString("base64url")
  return `${head}.${token.split(".")[1]}.`
}

/** Credentials without the right on any channel but `elsewhere`. */
export const strangersOf = async (elsewhere: string) => {
  const publisher = await tokenOf({})
  const bearers = [
    await tokenOf({ sub: "ann" }),
    await tokenOf({ secret: "another_secret_of_at_least_32_bytes" }),
    await tokenOf({ aud: "another" }),
    await tokenOf({ exp: -60 }),
    unsigned(publisher),
    `${publisher.slice(0, -4)}AAAA`,
    publisher.split(".").slice(0, 2).join("."),
    elsewhere,
    ...["publisher", "signed:publisher", "null", "", "bellcast_"]
  ]
  const names = ["publisher", "signed:publisher", "group:acme:editors", "system.Everyone"]
  const others = ["ann|group:acme:editors", "ann|editor", "ann|publisher"]
  const acme = [...names, "scribe", "editors", ...others]
  return [
    undefined,
    "",
    ...bearers.map((each) => `Bearer ${each}`),
    `bearer  ${elsewhere}`,
    // The token of a publisher where it is no bearer token.
    ...[publisher, `Basic ${publisher}`, `Signed ${publisher}`, `Bearer, ${publisher}`],
    ...[...names, "acme:editor"].map(basic),
    ...acme.map((each) => `acme ${each}`)
  ]
}

const methods = [
  ...["POST", "PUT", "GET", "HEAD", "DELETE", "OPTIONS", "PATCH"],
  ...["TRACE", "SEARCH", "LINK", "PROPFIND", "QUERY"]
]

export const channels = [
  ...["news", "new", "%6Eews", "news%20eu", "n%65ws", "other", "*", "news*", "%3E", "NEWS"],
  ...["news%00", "news%2Eeu", "elsewhere2", "elsewhere%2a", "%65lsewher", "elsewhere%20"]
]

/** Audiences that none of these people may send to. */
const audiences: ReadonlyArray<object> = [
  { channels: ["news"] },
  { users: [victim] },
  { channels: ["elsewhere"], users: [victim] },
  { channels: ["elsewhere", "news"] },
  { channels: ["elsewhere"], except_users: [victim] },
  { channels: "news" },
  {}
]

const victimInPath = encodeURIComponent(victim)
const person = `/v1/users/${victimInPath}`

const paths = [
  ...["/v1/broadcasts", "/v1/broadcasts/", "/v1/broadcasts?_method=POST", "/v1/%62roadcasts"],
  ...["news", "elsewhere", "other"].map((each) => `/v1/channels/${each}/members/${victimInPath}`),
  ...["/v1/channels/news/members", `/v1/channels/news/members/${victim}`],
  ...[person, `${person}/subscriptions`, `${person}/subscriptions?_limit=1`],
  ...[`/v1/users/${victim}/subscriptions`, `/v1/users/x/../${victimInPath}/subscriptions`],
  `${person}/subscriptions/${"0".repeat(64)}/restore`,
  ...channels.map((each) => `/v1/channels/${each}`),
  ...["/channels/news", "/channels/news/", "/v1/channels/news/", "/v1/channels//news"],
  ...["//v1/channels/news", "/v1/./channels/news", "/v1/x/../channels/news", "/V1/channels/news"],
  ...[
    "/v1/channels/elsewhere/../news",
    "/v1/channels/elsewhere%2F..%2Fnews",
    "/v1/channels/news%2F"
  ],
  ...[
    "/v1/channels/news%",
    "/v1/channels/news;x=1",
    "/v1/channels/%C3%28",
    "/v1%2Fchannels%2Fnews"
  ],
  ...[
    "/v1/channels/news?_method=POST",
    "/v1/channels/news?channel=elsewhere",
    "/v1/channels/news?"
  ],
  ...["/v1/channels/news/broadcasts/1", "/v1/channels/news/broadcasts", "/v1/channels", "*"],
  ...["http://127.0.0.1/v1/channels/news", "/v1/batch", "/v1/%62atch", "/v1/batch/"],
  "/v1/subscriptions",
  "/v1/channels/news/registration"
]

/** Headers that say the request is another one, or comes from somebody else. */
const smuggled: ReadonlyArray<Headers> = [
  {},
  { "x-http-method-override": "POST" },
  { "x-http-method": "POST", "x-method-override": "POST" },
  { "x-forwarded-user": "publisher", "x-forwarded-for": "127.0.0.1" },
  {
    ...behindProxy("publisher", "editors"),
    "x-proxy-secret": "a_secret_of_at_least_32_bytes_and_wrong"
  },
  { "x-forwarded-user": "publisher", "x-forwarded-groups": "editors", forwarded: "for=127.0.0.1" },
  { "x-original-url": "/v1/channels/elsewhere", "x-rewrite-url": "/v1/channels/elsewhere" },
  { "x-user": "signed:publisher", "remote-user": "publisher", "x-remote-user": "publisher" },
  { "bellcast-publisher": "signed:publisher", "bellcast-redrives": "1" },
  { "idempotency-key": "once" },
  { "idempotency-key": "of the publisher" },
  {
    cookie: "session=publisher; authorization=publisher",
    "proxy-authorization": basic("publisher")
  }
]

/** The headers that the proxy in front adds to the request of a user without the right. */
const fronts: ReadonlyArray<Headers> = [{}, {}, behindProxy("ann", "readers,publisher")]

export interface Sent {
  readonly method: string
  readonly path: string
  readonly authorization: string | undefined
  readonly headers: Headers
  /** Of the proxy; an entry of a batch has those of the batch. */
  readonly front: Headers
  /** Of the body of a broadcast that names its audience. */
  readonly to: object
}

export interface Story {
  readonly sent: ReadonlyArray<Sent>
  readonly outer: Pick<Sent, "authorization" | "front">
  /** How the requests stand in a batch. */
  readonly form: "entries" | "defaults" | "nested" | "upper case"
}

/** Sequences of requests; half of them subscribe and register before they post. */
export const stories = (strangers: ReadonlyArray<string | undefined>): fc.Arbitrary<Story> => {
  // Often none, so that headers alone decide.
  const authorization = fc.oneof(fc.constant(undefined), fc.constantFrom(...strangers))
  const front = fc.constantFrom(...fronts)
  const sent = fc.record({
    method: fc.oneof(fc.constant("POST"), fc.constantFrom(...methods)),
    path: fc.oneof(fc.constant("/v1/channels/news"), fc.constantFrom(...paths)),
    authorization,
    headers: fc.constantFrom(...smuggled),
    front,
    to: fc.constantFrom(...audiences)
  })
  const joined = fc.tuple(sent, fc.constantFrom(...channels)).map(([each, channel]) => {
    const path = `/v1/channels/${channel}`
    return [
      { ...each, method: "PUT", path: `${path}/registration` },
      { ...each, method: "GET", path },
      { ...each, method: "POST", path }
    ]
  })
  const some = fc.array(sent, { minLength: 1, maxLength: 8 })
  return fc.record({
    sent: fc.oneof(
      some,
      fc.tuple(joined, some).map(([first, then]) => [...first, ...then])
    ),
    outer: fc.record({ authorization, front }),
    form: fc.constantFrom("entries", "defaults", "nested", "upper case")
  })
}

/** The requests of a batch, which the paths of a batch itself would end. */
const batchSize = 20

/**
 * Each path, method and smuggled header, and a post after registering, with each of these
 * credentials; in stories of a batch. `front`: what the proxy adds to each request.
 */
export const sweep = (
  credentials: ReadonlyArray<string | undefined>,
  front: Headers = {}
): ReadonlyArray<Story> => {
  const to = audiences[0]!
  const post = { method: "POST", path: "/v1/channels/news", headers: {}, front, to }
  const all = credentials.flatMap((authorization): ReadonlyArray<Sent> => {
    const each = { ...post, authorization }
    const odd = paths.filter((path) => !path.includes("atch")).map((path) => ({ ...each, path }))
    const other = methods.map((method) => ({ ...each, method, headers: smuggled[1]! }))
    const registration = { ...each, method: "PUT", path: `${each.path}/registration` }
    const direct = audiences.map((to) => ({ ...each, path: "/v1/broadcasts", to }))
    const ends = ["PUT", "DELETE"].flatMap((method) =>
      paths.filter((path) => path.includes("victim")).map((path) => ({ ...each, method, path }))
    )
    const smuggling = smuggled.map((headers) => ({ ...each, headers }))
    return [...odd, ...smuggling, ...other, ...direct, ...ends, registration, each]
  })
  const starts = Array.from({ length: Math.ceil(all.length / batchSize) }, (_, i) => i * batchSize)
  const outer = { authorization: undefined, front }
  return starts.map((start) => {
    return { sent: all.slice(start, start + batchSize), outer, form: "entries" }
  })
}
