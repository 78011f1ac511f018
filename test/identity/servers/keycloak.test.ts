// The policies openid and oauth beside a real Keycloak: the whole way from a login to a push,
// tokens that are none for Bellcast, ended sessions, new keys, and a login by a real browser.
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { requestsIn } from "#test/identity/document.ts"
import { vapid } from "#test/service.ts"
import { missingKeycloak } from "./keycloak.ts"
import { defineKeys } from "./keycloak-keys.ts"
import { defineLogin } from "./keycloak-login.ts"
import { claimsOf, lifetimeSeconds, section, startWorld, type World } from "./keycloak-world.ts"
import { realm, shortSeconds } from "./realm.ts"

if (missingKeycloak !== undefined) process.stderr.write(`skipped: ${missingKeycloak}\n`)

let world: World

/** Sends requests with a token until a moment (ms); resolves with the time and status of each. */
const statusesUntil = async (name: "openid" | "oauth", token: string, until: number) => {
  const seen: Array<{ readonly sentAt: number; readonly doneAt: number; readonly status: number }> =
    []
  while (Date.now() < until) {
    const sentAt = Date.now()
    const status = await world[name].statusOf(token)
    seen.push({ sentAt, doneAt: Date.now(), status })
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return seen
}

const defineTokens = (name: "openid" | "oauth") => {
  it("a user registers, subscribes, publishes by a role, and the push arrives", async () => {
    const { push, tokens } = world
    const { send, userOf } = world[name]
    const { access_token: token } = await tokens("page", "alice")
    const channel = `/channels/news-${name}`
    const agent = push.subscribe({ applicationServerKey: vapid.publicKey })
    expect((await userOf(token))?.id).toBe(`${name}:${claimsOf(token)["sub"]}`)
    expect((await send(token, "POST", "/subscriptions", agent.subscription)).status).toBe(201)
    expect((await send(token, "PUT", `${channel}/registration`)).status).toBe(202)
    expect((await send(token, "POST", channel, { title: "hello" })).status).toBe(202)
    await push.waitFor(() => agent.received.length > 0, 20_000)
    expect(agent.received.map(({ text }) => text)).toEqual(['{"title":"hello"}'])
    expect(push.faults).toEqual([])
  })

  it("a user without the role subscribes, and may not publish", async () => {
    const { send } = world[name]
    const { access_token: token } = await world.tokens("page", "bob")
    const channel = `/channels/bob-${name}`
    expect((await send(token, "PUT", `${channel}/registration`)).status).toBe(202)
    const response = await send(token, "POST", channel, { title: "hello" })
    expect([response.status, ((await response.json()) as { errno: number }).errno]).toEqual([
      403, 121
    ])
  })

  it("ID tokens, refresh tokens, and tokens for other audiences are refused", async () => {
    const { tokens } = world
    const mine = await tokens("page", "alice")
    const others = await tokens("other", "alice")
    const careless = await tokens("careless", "alice")
    expect(claimsOf(others.access_token)["aud"]).toBe("account")
    expect(claimsOf(careless.id_token)["aud"]).toContain("bellcast")
    const refused = [mine.id_token, mine.refresh_token, others.access_token, careless.id_token]
    for (const token of refused) expect(await world[name].statusOf(token)).toBe(401)
    for (const { access_token: token } of [mine, careless])
      expect(await world[name].statusOf(token)).toBe(200)
  })

  it("a token works to the second of its end, also while its verdict is remembered", async () => {
    expect(shortSeconds).toBeLessThan(lifetimeSeconds)
    const { access_token: token } = await world.tokens("short", "alice")
    const end = Number(claimsOf(token)["exp"]) * 1000
    const seen = await statusesUntil(name, token, end + 500)
    const before = seen.filter(({ doneAt }) => doneAt < end).map(({ status }) => status)
    const after = seen.filter(({ sentAt }) => sentAt >= end).map(({ status }) => status)
    expect(new Set(before)).toEqual(new Set([200]))
    expect(new Set(after)).toEqual(new Set([401]))
  })

  const isAsked = name === "oauth"
  it(`a token that was revoked before its first use is ${isAsked ? 401 : 200}`, async () => {
    const { keycloak, tokens } = world
    // A JWT that is verified by its key works until its end.
    const expected = isAsked ? 401 : 200
    const ended = (await tokens("page", "bob")).access_token
    await keycloak.admin("DELETE", `/${realm}/sessions/${claimsOf(ended)["sid"]}`)
    expect(await world[name].statusOf(ended)).toBe(expected)
    const left = (await tokens("page", "bob")).access_token
    const user = `/${realm}/users/${claimsOf(left)["sub"]}`
    await keycloak.admin("POST", `${user}/logout`)
    expect(await world[name].statusOf(left)).toBe(expected)
    const disabled = (await tokens("page", "bob")).access_token
    await keycloak.admin("PUT", user, { enabled: false })
    expect(await world[name].statusOf(disabled)).toBe(expected)
    await keycloak.admin("PUT", user, { enabled: true })
  })

  it(`a lightweight token ${isAsked ? "has its role" : "is refused"}`, async () => {
    const { access_token: token } = await world.tokens("lightweight", "alice")
    const { status } = await world[name].send(token, "POST", "/channels/light", { title: "hello" })
    expect(status).toBe(isAsked ? 202 : 401)
  })
}

describe.skipIf(missingKeycloak !== undefined)("Keycloak", () => {
  beforeAll(async () => {
    world = await startWorld()
  }, 300_000)
  afterAll(() => world?.[Symbol.asyncDispose]())

  describe("behind openid", () => {
    defineTokens("openid")

    it("a role of the client is a principal, and an audience for every other client", async () => {
      const { access_token: token } = await world.tokens("other", "carol")
      expect(claimsOf(token)).toMatchObject({
        aud: expect.arrayContaining(["bellcast"]),
        realm_access: { roles: expect.arrayContaining(["chief editor"]) }
      })
      const { principals = [] } = (await world.plain.userOf(token)) ?? {}
      expect(principals).toContain("group:openid:writer")
      expect(principals.filter((principal) => principal.includes("chief"))).toEqual([])
    })

    it("the request of the document works", async () => {
      const { access_token: token } = await world.tokens("page", "alice")
      const [command = ""] = requestsIn(section)
      const { stdout } = await promisify(execFile)(
        "sh",
        ["-c", `${command.trim().replace("https://push.example.org/v1", world.openid.url)} -is`],
        { env: { ...process.env, TOKEN: token } }
      )
      expect(stdout).toMatch(/^HTTP\/1.1 200 /)
    })
  })

  describe("behind oauth", () => {
    defineTokens("oauth")

    it("a revoked token is refused within its lifetime, though it is used", async () => {
      const { access_token: token } = await world.tokens("page", "bob")
      const verifiedBefore = Date.now()
      expect(await world.oauth.statusOf(token)).toBe(200)
      const { sub } = claimsOf(token)
      await world.keycloak.admin("POST", `/${realm}/users/${sub}/logout`)
      const end = verifiedBefore + lifetimeSeconds * 1000
      const seen = await statusesUntil("oauth", token, end + 2_000)
      const late = seen.filter(({ sentAt }) => sentAt >= end + 1_000).map(({ status }) => status)
      expect(new Set(late)).toEqual(new Set([401]))
    })

    it("Bellcast may log in by a signed JWT", async () => {
      const { access_token: token } = await world.tokens("page-key", "alice")
      expect((await world.oauth.userOf(token))?.id).toBe(`oauth-key:${claimsOf(token)["sub"]}`)
    })
  })

  describe("with new keys", () => defineKeys(() => world))
  describe("by a browser", () => defineLogin(() => world))

  it("gone, leaves the users of openid, and is a 503 where it is asked", async () => {
    const { keycloak, oauth, openid, tokens } = world
    const [{ access_token: known }, { access_token: later }] = [
      await tokens("page", "alice"),
      await tokens("page", "bob")
    ]
    expect(await oauth.statusOf(known)).toBe(200)
    const heartbeats = async () =>
      (await Promise.all([openid, oauth].map(({ url }) => fetch(`${url}/__heartbeat__`)))).map(
        ({ status }) => status
      )
    expect(await heartbeats()).toEqual([200, 200])
    await keycloak[Symbol.asyncDispose]()
    expect([await openid.statusOf(later), await oauth.statusOf(known)]).toEqual([200, 200])
    const response = await oauth.send(later, "GET", "/subscriptions")
    expect([response.status, response.headers.has("retry-after")]).toEqual([503, true])
    await expect.poll(heartbeats, { timeout: 20_000, interval: 500 }).toEqual([503, 503])
  })
})
