// Wrong credentials of every policy, and new users: both are limited per address, in front of one
// gateway with all policies. The tests play clients of addresses of their own.
import { SignJWT } from "jose"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { basic } from "#test/client.ts"
import { type Folder, makeFolder } from "#test/folder.ts"
import { type IdentityProvider, startIdentityProvider } from "#test/identity/provider.ts"
import { startNats, type TestNats } from "#test/nats.ts"
import { type Service, startService } from "#test/service.ts"

const failuresMax = 20
const newUsersMax = 2
const entriesMax = 25
const secret = "a secret that is shared with the site or the proxy"
const siteSecret = secret.replaceAll(" ", "_")

/** Knows one text, and counts what it is asked on its standard output. */
const acme = `export default {
  authenticate: async ({ scheme, token }) => {
    if (scheme !== "acme") return undefined
    console.log("acme is asked")
    return token === "open" ? { user: "alice" } : undefined
  }
}`

let nats: TestNats
let service: Service
let provider: IdentityProvider
let folder: Folder
beforeAll(async () => {
  ;[nats, provider, folder] = await Promise.all([
    startNats({ syncAlways: false }),
    startIdentityProvider(),
    makeFolder({ "acme.mjs": acme })
  ])
  service = await startService({
    natsUrl: nats.url,
    cwd: folder.path,
    roles: "gateway,projection",
    env: {
      BELLCAST_TRUSTED_PROXIES: "127.0.0.1",
      BELLCAST_HTTP_SCHEME: "http",
      BELLCAST_HTTP_HOST: "127.0.0.1",
      BELLCAST_AUTH_POLICIES: "acme=./acme.mjs openid oauth signed token proxy portier basicauth",
      BELLCAST_AUTH_OPENID_ISSUER: provider.url,
      BELLCAST_AUTH_OPENID_AUDIENCE: "bellcast",
      BELLCAST_AUTH_OAUTH_INTROSPECTION_URL: `${provider.url}/introspect`,
      BELLCAST_AUTH_OAUTH_CLIENT_ID: "bellcast",
      BELLCAST_AUTH_OAUTH_CLIENT_SECRET: "secret",
      BELLCAST_AUTH_SIGNED_SECRETS: siteSecret,
      BELLCAST_AUTH_SIGNED_AUDIENCE: "bellcast",
      BELLCAST_AUTH_PROXY_SECRET: secret,
      BELLCAST_AUTH_PORTIER_BROKER_URL: provider.url,
      BELLCAST_AUTH_FAILURES_PER_ADDRESS_PER_MINUTE_MAX: String(failuresMax),
      BELLCAST_NEW_USERS_PER_ADDRESS_PER_HOUR_MAX: String(newUsersMax)
    }
  })
})
afterAll(async () => {
  await service.stop()
  await Promise.all([provider, nats, folder].map((each) => each[Symbol.asyncDispose]()))
})

let address = ""
let addresses = 0
beforeEach(() => {
  addresses += 1
  address = `198.51.100.${addresses}`
})

type Headers = Readonly<Record<string, string>>
const send = (headers: Headers, path = "/subscriptions", init: RequestInit = {}) =>
  fetch(`${service.url}${path}`, {
    ...init,
    headers: { "x-forwarded-for": address, ...headers }
  })
const statusOf = async (authorization: string) => (await send({ authorization })).status
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** Sends wrong credentials until they are refused unseen. Returns how many were looked at. */
const tried = async (headers: (i: number) => Headers | Promise<Headers>): Promise<number> => {
  for (let i = 0; i < 2 * failuresMax; i += 1) {
    const response = await send(await headers(i))
    if (response.status === 429) {
      expect(await response.json()).toMatchObject({ error_code: "too-many-wrong-credentials" })
      expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0)
      return i
    }
    expect(response.status).toBe(401)
  }
  return 2 * failuresMax
}

const signedBy = (key: string) =>
  new SignJWT({ sub: "42", aud: "bellcast", exp: Math.floor(Date.now() / 1000) + 60 })
    .setProtectedHeader({ alg: "HS256" })
    .sign(Buffer.from(key))

describe("wrong credentials", () => {
  const wrong: Readonly<Record<string, (i: number) => Headers | Promise<Headers>>> = {
    "a module of an operator": () => ({ authorization: "Acme closed" }),
    openid: async (i) => bearer(await provider.token({ jti: i, exp: 1 })),
    oauth: (i) => bearer(`opaque-${i}`),
    signed: async (i) => bearer(await signedBy(`${siteSecret}${i}`)),
    token: (i) => bearer(`bellcast_${i}`),
    "proxy, from a stranger": () => ({ "x-forwarded-user": "anna" }),
    portier: (i) => ({ authorization: `Portier ${i.toString(16).padStart(64, "0")}` }),
    "portier, malformed": () => ({ authorization: "Portier x" }),
    "basicauth, malformed": () => ({ authorization: "Basic x" }),
    "no policy, by their scheme": () => ({ authorization: "Digest x" }),
    "no policy, by their form": () => ({ authorization: "\\x" })
  }
  for (const [name, headers] of Object.entries(wrong)) {
    it(`for ${name} are limited per address`, async () => {
      const looked = await tried(headers)
      // One more becomes free every three seconds.
      expect(looked).toBeGreaterThanOrEqual(failuresMax)
      expect(looked).toBeLessThan(failuresMax + 5)
    })
  }

  it("are limited in the entries of a batch, too", async () => {
    const requests = Array.from({ length: entriesMax }, (_, i) => ({
      path: "/subscriptions",
      headers: { Authorization: `Acme closed-${i}` }
    }))
    const response = await send({ "content-type": "application/json" }, "/batch", {
      method: "POST",
      body: JSON.stringify({ requests })
    })
    const { responses } = (await response.json()) as { responses: Array<{ status: number }> }
    const statuses = responses.map(({ status }) => status)
    expect(statuses).toEqual([
      ...Array(failuresMax).fill(401),
      ...Array(entriesMax - failuresMax).fill(429)
    ])
    expect(await statusOf("Acme closed")).toBe(429)
  })

  it("of an address stop neither others nor what was good there before", async () => {
    const asked = () => service.output().split("acme is asked").length
    expect(await statusOf("Acme open")).toBe(200)
    await tried(() => ({ authorization: "Digest x" }))
    // The limit may allow another failure meanwhile. The server is asked about that guess only.
    const guess = async () => {
      const before = asked()
      return [await statusOf("Acme guess"), asked() - before]
    }
    await expect.poll(guess).toEqual([429, 0])
    expect(await statusOf("Acme open")).toBe(200)
    expect(await statusOf(basic("anna"))).toBe(200)
    address = "203.0.113.1"
    expect(await statusOf("Acme guess")).toBe(401)
  })

  it("are none while the server that verifies them is away", async () => {
    provider.tokens.set("good-again", { active: true, sub: "alice" })
    provider.mood = "down"
    for (let i = 0; i < 4 * failuresMax; i += 1)
      expect((await send(bearer("good-again"))).status).toBe(503)
    provider.mood = "well"
    // One more is asked about every three seconds, and then the server is no longer away.
    const status = async () => (await send(bearer("good-again"))).status
    await expect.poll(status, { timeout: 15_000 }).toBe(200)
    expect(provider.count("/introspect")).toBeLessThan(4 * failuresMax)
  })

  it("are none where there are no credentials", async () => {
    for (let i = 0; i <= 2 * failuresMax; i += 1) expect((await send({})).status).toBe(401)
  })
})

describe("new users of one address", () => {
  const register = async (authorization: string) =>
    (await send({ authorization }, "/channels/news/registration", { method: "PUT" })).status

  it("are limited where nobody verifies them, and not where a policy does", async () => {
    for (let i = 0; i < 2 * newUsersMax; i += 1) {
      const token = await provider.token({ sub: `user-${i}` })
      expect(await register(`Bearer ${token}`)).toBe(202)
    }
    for (let i = 0; i < newUsersMax; i += 1)
      expect(await register(basic(`new-${i} at ${address}`))).toBe(202)
    expect(await register(basic(`one more at ${address}`))).toBe(429)
    expect(await register(`Bearer ${await provider.token({ sub: "another" })}`)).toBe(202)
  })
})
