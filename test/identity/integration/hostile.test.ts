// Clients and providers that mean harm, in front of one gateway with several policies that share a
// scheme and an issuer.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { type Folder, makeFolder } from "#test/folder.ts"
import { type IdentityProvider, startIdentityProvider } from "#test/identity/provider.ts"
import { userIn } from "#test/identity/requests.ts"
import { startNats, type TestNats } from "#test/nats.ts"
import { type Service, startService } from "#test/service.ts"

const failuresMax = 20

/** A module whose result throws when it is read. */
const trap = `export default {
  authenticate: async ({ scheme, token }) =>
    scheme === "trap" ? { get user() { throw new Error("it holds " + token) } } : undefined
}`

let nats: TestNats
let service: Service
let first: IdentityProvider
let second: IdentityProvider
let issuer: IdentityProvider
let folder: Folder

beforeAll(async () => {
  ;[nats, first, second, issuer, folder] = await Promise.all([
    startNats(),
    startIdentityProvider(),
    startIdentityProvider(),
    startIdentityProvider(),
    makeFolder({ "trap.mjs": trap })
  ])
  service = await startService({
    natsUrl: nats.url,
    cwd: folder.path,
    roles: "gateway,projection",
    env: {
      // Each test plays clients of addresses of its own.
      BELLCAST_TRUSTED_PROXIES: "127.0.0.1",
      BELLCAST_AUTH_POLICIES: "trap=./trap.mjs oauth oauth-second openid-info openid-staff openid",
      BELLCAST_AUTH_OAUTH_INTROSPECTION_URL: `${first.url}/introspect`,
      BELLCAST_AUTH_OAUTH_CLIENT_ID: "bellcast",
      BELLCAST_AUTH_OAUTH_CLIENT_SECRET: "secret",
      BELLCAST_AUTH_OAUTH_USERID_FIELD: "email",
      BELLCAST_AUTH_OAUTH_GROUP_FIELDS: "email",
      BELLCAST_AUTH_OAUTH_SECOND_INTROSPECTION_URL: `${second.url}/introspect`,
      BELLCAST_AUTH_OAUTH_SECOND_CLIENT_ID: "bellcast",
      BELLCAST_AUTH_OAUTH_SECOND_CLIENT_SECRET: "secret",
      BELLCAST_AUTH_OPENID_INFO_ISSUER: second.url,
      BELLCAST_AUTH_OPENID_INFO_AUDIENCE: "bellcast",
      BELLCAST_AUTH_OPENID_INFO_USERINFO: "true",
      BELLCAST_AUTH_OPENID_INFO_USERID_FIELD: "nickname",
      BELLCAST_AUTH_OPENID_INFO_GROUP_FIELDS: "email",
      BELLCAST_AUTH_OPENID_STAFF_ISSUER: issuer.url,
      BELLCAST_AUTH_OPENID_STAFF_AUDIENCE: "bellcast",
      BELLCAST_AUTH_OPENID_STAFF_REQUIRED_SCOPES: "staff",
      BELLCAST_AUTH_OPENID_ISSUER: issuer.url,
      BELLCAST_AUTH_OPENID_AUDIENCE: "bellcast",
      BELLCAST_AUTH_FAILURES_PER_ADDRESS_PER_MINUTE_MAX: String(failuresMax)
    }
  })
})
afterAll(async () => {
  await service.stop()
  const others = [first, second, issuer, nats, folder]
  await Promise.all(others.map((each) => each[Symbol.asyncDispose]()))
})
let address = ""
let addresses = 0
beforeEach(() => {
  addresses += 1
  address = `198.51.100.${addresses}`
  for (const provider of [first, second, issuer]) {
    provider.mood = "well"
    provider.requests.length = 0
  }
})

const send = (authorization: string, path = "/subscriptions", init: RequestInit = {}) =>
  fetch(`${service.url}${path}`, {
    ...init,
    headers: { authorization, "x-forwarded-for": address, ...init.headers }
  })
const statusOf = async (token: string) => (await send(`Bearer ${token}`)).status
const userOf = async (token: string) => (await userIn(await send(`Bearer ${token}`, "/")))?.id

describe("a mail address", () => {
  it("that nobody verified is no user, by introspection either", async () => {
    first.tokens.set("unverified", { active: true, email: "a@example.org", email_verified: false })
    first.tokens.set("verified", { active: true, email: "a@example.org", email_verified: true })
    expect(await statusOf("verified")).toBe(200)
    expect(await statusOf("unverified")).toBe(401)
    const { user } = (await (await send("Bearer verified", "/")).json()) as {
      user: { id: string; principals: string[] }
    }
    expect(user.id).toMatch(/^oauth:@[0-9a-f]{64}$/)
    expect(user.principals.at(-1)).toMatch(/^group:oauth:@[0-9a-f]{64}$/)
  })
})

describe("userinfo", () => {
  const anna = { email: "anna@example.org", email_verified: true }
  const mallory = { sub: "alice", email: "mallory@example.org", email_verified: true }
  const principalsOf = async (claims: Readonly<Record<string, unknown>>) => {
    const response = await send(`Bearer ${await second.token(claims)}`, "/")
    const { user } = (await response.json()) as { user?: { principals: string[] } }
    return user?.principals
  }

  it("has the user of a token that does not name one", async () => {
    second.userinfo = { sub: "alice", nickname: "al" }
    expect(await principalsOf({})).toContain("openid-info:al")
    second.userinfo = { sub: "bob", nickname: "bob" }
    expect(await principalsOf({ jti: "another" })).toBeUndefined()
  })

  it("verifies no other mail address, which stands in the token", async () => {
    second.userinfo = mallory
    const own = (await principalsOf({ nickname: "mal" }))!.at(-1)
    expect(own).toMatch(/^group:openid-info:@[0-9a-f]{64}$/)
    expect((await principalsOf({ nickname: "mal", email: anna.email }))!.at(-1)).toBe(own)
    const unverified = { email: anna.email, email_verified: false }
    expect((await principalsOf({ nickname: "mal", ...unverified }))!.join()).not.toMatch(/group/)
    expect((await principalsOf({ nickname: "mal", ...anna }))!.at(-1)).not.toBe(own)
  })
})

describe("clients that leave before their response", () => {
  it("use up the attempts of their address", async () => {
    first.mood = "slow"
    const leaving = Array.from({ length: failuresMax + 5 }, async (_, i) => {
      const signal = AbortSignal.timeout(500)
      return send(`Bearer left-${i}`, "/subscriptions", { signal }).catch(() => "left")
    })
    expect(new Set(await Promise.all(leaving))).toEqual(new Set(["left"]))
    first.mood = "well"
    // Fourteen tries do not reach the limit by themselves.
    const tried = () => statusOf(`after-${first.requests.length}`)
    await expect.poll(tried, { interval: 500, timeout: 6_500 }).toBe(429)
  })
})

describe("two policies of one issuer", () => {
  it("are both asked, in order", async () => {
    expect(await userOf(await issuer.token({ scope: "staff" }))).toBe("openid-staff:alice")
    expect(await userOf(await issuer.token())).toBe("openid:alice")
  })
})

describe("a token", () => {
  it("has one spelling", async () => {
    const [head, ...rest] = (await issuer.token()).split(".")
    const signature = rest.pop()!
    expect(await statusOf([head, ...rest, signature].join("."))).toBe(200)
    const spaced = [head, ...rest, `${signature.slice(0, 9)} ${signature.slice(9)}`].join(".")
    expect(await statusOf(spaced)).toBe(401)
    // The last character of 256 bytes holds two bits of them, and four that decoders drop.
    const bits = signature.replace(/.$/, (last) => ({ A: "B", Q: "R", g: "h", w: "x" })[last]!)
    const plain = signature.replaceAll("-", "+").replaceAll("_", "/")
    for (const other of [bits, plain, `${signature}==`])
      expect(await statusOf([head, ...rest, other].join(".")), other).toBe(401)
  })

  it("for the page is none for us, by its nonce", async () => {
    const header = { typ: "JWT" }
    expect(await statusOf(await issuer.token({ nonce: "n" }, header))).toBe(401)
    expect(await statusOf(await issuer.token({ nonce: "n", typ: "Bearer" }, header))).toBe(200)
    expect(await statusOf(await issuer.token({ nonce: "n" }))).toBe(200)
  })
})

describe("wrong tokens", () => {
  it("at once become few requests", async () => {
    const tokens = Array.from({ length: 300 }, (_, i) => `burst-${i}`)
    await Promise.all(tokens.map(statusOf))
    // The limit, and those under way when it is reached.
    expect(first.count("/introspect")).toBeLessThan(200)
  })

  it("become few requests to a server that says that they are too many", async () => {
    first.mood = "429"
    second.mood = "429"
    for (let i = 0; i < 3 * failuresMax; i += 1) await statusOf(`refused-${i}`)
    expect(second.count("/introspect")).toBeLessThan(2 * failuresMax)
  })
})

describe("users of the second server", () => {
  it("are no failures of the first", async () => {
    for (let i = 0; i < 3; i += 1)
      second.tokens.set(`second-${i}`, { active: true, sub: `user${i}` })
    for (let i = 0; i < 2 * failuresMax; i += 1) expect(await statusOf("second-0")).toBe(200)
    expect(await statusOf("second-1")).toBe(200)
  })

  it("do not wait for the first one again, which is away", async () => {
    second.tokens.set("second-away", { active: true, sub: "user" })
    first.mood = "500"
    expect(await statusOf("second-away")).toBe(200)
    const asked = first.requests.length
    expect(asked).toBeGreaterThan(0)
    expect(await statusOf("second-away")).toBe(200)
    expect(first.requests.length).toBe(asked)
  })
})

describe("a module of an operator", () => {
  it("may return a trap", async () => {
    expect((await send("Trap swordfish")).status).toBe(503)
    expect(service.output()).not.toMatch(/swordfish/)
  })
})
