// The policies openid and oauth beside a real Keycloak: the whole way from a login to a push,
// tokens that are none for Bellcast, ended sessions, new keys, and a login by a real browser.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { vapid } from "#test/service.ts"
import { missingKeycloak } from "./keycloak.ts"
import { defineKeys } from "./keycloak-keys.ts"
import { defineLogin } from "./keycloak-login.ts"
import { claimsOf, lifetimeSeconds, startWorld, type World } from "./keycloak-world.ts"
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
    const { idOf, send } = world[name]
    const { access_token: token } = await tokens("page", "alice")
    const channel = `/channels/news-${name}`
    const agent = push.subscribe({ applicationServerKey: vapid.publicKey })
    expect(await idOf(token)).toBe(`${name}:${claimsOf(token)["sub"]}`)
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
    expect(claimsOf(others.access_token)["aud"]).toBe("account")
    for (const token of [mine.id_token, mine.refresh_token, others.access_token, others.id_token])
      expect(await world[name].statusOf(token)).toBe(401)
    expect(await world[name].statusOf(mine.access_token)).toBe(200)
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

  it(`a token whose session was ended before its first use is ${name === "oauth" ? 401 : 200}`, async () => {
    const { keycloak, tokens } = world
    const ended = (await tokens("page", "bob")).access_token
    await keycloak.admin("DELETE", `/${realm}/sessions/${claimsOf(ended)["sid"]}`)
    // A JWT that is verified by its key works until its end.
    expect(await world[name].statusOf(ended)).toBe(name === "oauth" ? 401 : 200)
    const loggedOut = (await tokens("page", "bob")).access_token
    await keycloak.admin("POST", `/${realm}/users/${claimsOf(loggedOut)["sub"]}/logout`)
    expect(await world[name].statusOf(loggedOut)).toBe(name === "oauth" ? 401 : 200)
  })
}

describe.skipIf(missingKeycloak !== undefined)("Keycloak", () => {
  beforeAll(async () => {
    world = await startWorld()
  }, 300_000)
  afterAll(() => world?.[Symbol.asyncDispose]())

  describe("behind openid", () => defineTokens("openid"))

  describe("behind oauth", () => {
    defineTokens("oauth")

    it("a revoked token is refused within its lifetime from verification, used or not", async () => {
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
      expect(await world.oauth.idOf(token)).toBe(`oauth-key:${claimsOf(token)["sub"]}`)
    })
  })

  describe("with new keys", () => defineKeys(() => world))
  describe("by a browser", () => defineLogin(() => world))
})
