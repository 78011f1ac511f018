// Tokens of servers that publish: what they may do at two gateways, until when, and what is stored
// of them.
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { basic } from "#test/client.ts"
import { startNats, type TestNats } from "#test/nats.ts"
import { elapsed } from "#test/quiet.ts"
import { runCli } from "#test/run-cli.ts"
import { type Service, startService } from "#test/service.ts"
import { storedText } from "#test/stored-text.ts"

let nats: TestNats
let service: Service
let other: Service
const start = (roles: string) =>
  startService({
    natsUrl: nats.url,
    roles,
    env: {
      BELLCAST_AUTH_POLICIES: "token basicauth",
      BELLCAST_AUTH_FAILURES_PER_ADDRESS_PER_MINUTE_MAX: "20"
    }
  })
beforeAll(async () => {
  nats = await startNats()
  ;[service, other] = await Promise.all([start("gateway,projection"), start("gateway")])
})
afterAll(async () => {
  await Promise.all([service.stop(), other.stop()])
  await nats[Symbol.asyncDispose]()
})

const cli = (...args: ReadonlyArray<string>) =>
  runCli(["token", ...args], { BELLCAST_NATS_URL: nats.url })
const create = async (name: string, ...args: ReadonlyArray<string>) => {
  const made = await cli("create", name, "--channel", "news*", "--expires", "90d", ...args)
  expect(made.code).toBe(0)
  return made.stdout.trimEnd()
}
const rows = async (): Promise<ReadonlyArray<Record<string, unknown>>> =>
  (await cli("list", "--json")).stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line))
const row = async (name: string) => (await rows()).find((each) => each["name"] === name)

const send = (token: string, path: string, method = "GET", { url } = service) =>
  fetch(`${url}${path}`, { method, headers: { authorization: `Bearer ${token}` } })
const publish = async (token: string, channel = "news", at = service) =>
  (await send(token, `/channels/${channel}`, "POST", at)).status
const until = (condition: () => Promise<boolean>) =>
  vi.waitFor(async () => expect(await condition()).toBe(true), { timeout: 20_000, interval: 20 })
/** Uses a token until it is refused. Returns when the last good use was sent. */
const lastGood = async (token: string, at = service): Promise<number> => {
  let last = 0
  await until(async () => {
    const sentAt = Date.now()
    if ((await publish(token, "news", at)) === 401) return true
    last = sentAt
    return false
  })
  return last
}
const today = () => new Date().toISOString().slice(0, 10)

describe("a token", () => {
  it("is printed once, and neither stored nor logged", async () => {
    const made = await cli("create", "billing", "--channel", "news*", "--expires", "90d")
    expect(made.code).toBe(0)
    expect(made.stdout).toMatch(/^bellcast_[0-9A-Za-z]{49}\n$/)
    const token = made.stdout.trimEnd()
    expect(made.stderr).toMatch(
      /may publish on news\* until \d{4}-.* shown again\. Gateways take it /
    )
    expect(await publish(token)).toBe(202)
    expect(await row("billing")).toMatchObject({ channels: ["news*"], state: "valid" })
    const [random, text] = [token.slice("bellcast_".length, -6), await storedText(nats.url)]
    expect(text).toMatch(/bellcast\.cmd\.token\.billing /)
    expect(text).not.toContain(random)
    expect(service.output()).not.toContain(random)
    const metrics = await (await fetch(`${service.metricsUrl()}/metrics`)).text()
    expect(metrics).not.toContain(random)
  })

  it("publishes on its channels and reads the status of their broadcasts", async () => {
    const token = await create("weather", "--channel", "weather")
    const posted = await send(token, "/channels/weather", "POST")
    expect(posted.status).toBe(202)
    const path = new URL(posted.headers.get("location")!).pathname.slice("/v1".length)
    expect((await send(token, path)).status).toBe(200)
    expect(await publish(token, "news-of-today", other)).toBe(202)
    const reader = await create("reader")
    expect((await send(reader, path)).status).toBe(403)
    const { user } = (await (await send(token, "/")).json()) as { user: unknown }
    expect(user).toEqual({
      id: "token:weather",
      principals: ["token:weather", "system.Everyone", "system.Authenticated"]
    })
    const broadcast = path.split("/").at(-1)!
    const audit = await runCli(["audit", broadcast], { BELLCAST_NATS_URL: nats.url })
    expect(audit.stdout).toMatch(/from rest by token:weather/)
  })

  it("may do nothing else, alone or in a batch, whatever everybody may", async () => {
    const token = await create("narrow")
    const refused: ReadonlyArray<readonly [string, string]> = [
      ["POST", "/channels/sport"],
      ["GET", "/channels/sport"],
      ["PUT", "/channels/news/registration"],
      ["DELETE", "/channels/news/registration"],
      ["GET", "/subscriptions"],
      ["DELETE", "/subscriptions"],
      ["GET", "/subscriptions/x"],
      ["GET", "/channels/sport/broadcasts/1"]
    ]
    for (const [method, path] of refused) {
      const response = await send(token, path, method)
      expect([path, response.status, await response.json()]).toMatchObject([
        path,
        403,
        { errno: 121 }
      ])
    }
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
    const requests = [...refused, ["POST", "/channels/news"]].map(([method, path]) => ({
      method,
      path
    }))
    const init = { method: "POST", headers, body: JSON.stringify({ requests }) }
    const batch = (await (await fetch(`${service.url}/batch`, init)).json()) as {
      responses: ReadonlyArray<{ status: number }>
    }
    expect(batch.responses.map(({ status }) => status)).toEqual([...refused.map(() => 403), 202])
  })

  it("is refused when it is wrong, unknown or of another scheme", async () => {
    const token = await create("typed")
    const typo = token.slice(0, -1) + (token.endsWith("0") ? "1" : "0")
    for (const wrong of [typo, "bellcast_", `${token}0`, token.toLowerCase()]) {
      const response = await send(wrong, "/channels/news", "POST")
      expect(response.status).toBe(401)
      expect(response.headers.get("www-authenticate")).toMatch(
        /^Bearer realm="Realm", error="invalid_token", Basic/
      )
    }
    const init = { headers: { authorization: basic(token) } }
    const asUser = await fetch(`${service.url}/subscriptions`, init)
    // The policy basicauth makes a user of any name: the token is no credential of it.
    expect(asUser.status).toBe(200)
  })

  it("ends in the second in which it expires", async () => {
    const made = await cli("create", "brief", "--channel", "news", "--expires", "2s")
    const token = made.stdout.trimEnd()
    const [, end = ""] = /until (\S+Z)/.exec(made.stderr) ?? []
    expect(await publish(token)).toBe(202)
    const last = await lastGood(token)
    expect(Date.now() - Date.parse(end)).toBeGreaterThan(-50)
    expect(last - Date.parse(end)).toBeLessThan(1_000)
    expect(await row("brief")).toMatchObject({ state: "expired" })
  })

  it("is revoked at every gateway within a second, and its name may be used again", async () => {
    const token = await create("leaked")
    expect([await publish(token), await publish(token, "news", other)]).toEqual([202, 202])
    const twice = await cli("create", "leaked", "--channel", "*", "--expires", "1h")
    expect(twice).toMatchObject({ code: 1, stderr: expect.stringMatching(/token revoke leaked/) })
    expect(await cli("revoke", "leaked")).toMatchObject({
      code: 0,
      stdout: "the token leaked is revoked: within a second no gateway accepts it\n"
    })
    const revokedBy = Date.now()
    for (const last of await Promise.all([lastGood(token), lastGood(token, other)]))
      expect(last - revokedBy).toBeLessThan(1_000)
    expect(await row("leaked")).toMatchObject({
      state: "revoked",
      revoked: expect.stringContaining(today())
    })
    expect((await cli("revoke", "leaked")).stdout).toMatch(/nothing to change/)
    expect((await cli("revoke", "nobody")).code).toBe(1)
    const next = await create("leaked")
    expect([await publish(next), await publish(token)]).toEqual([202, 401])
  })

  it("shows the day of its last use, with one write a day", async () => {
    const token = await create("daily")
    expect(await row("daily")).toMatchObject({ last_use: null })
    for (const at of [service, other, service, other])
      expect(await publish(token, "news", at)).toBe(202)
    await until(async () => (await row("daily"))?.["last_use"] === today())
    expect((await cli("list")).stdout).toMatch(
      new RegExp(`^daily +news\\* +- +- +valid +${today()} +\\S+ +${today()} +-$`, "m")
    )
    const nc = await connect({ servers: nats.url })
    const jsm = await jetstreamManager(nc)
    const filter = { subjects_filter: "$KV.bellcast_cache.token-use.>" }
    const { state } = await jsm.streams.info("KV_bellcast_cache", filter)
    const used = Object.keys(state.subjects ?? {})
    expect(used.length).toBeGreaterThan(0)
    for (const subject of used)
      expect(
        (await jsm.streams.getMessage("KV_bellcast_cache", { last_by_subj: subject }))?.header.get(
          "Nats-TTL"
        )
      ).toBe("never")
    await nc.close()
  })

  it("works on while its address sends too many wrong ones", async () => {
    const token = await create("steady")
    expect(await publish(token, "news", other)).toBe(202)
    const wrong = Array.from({ length: 25 }, (_, i) => publish(`${token}${i}`, "news", other))
    expect(await Promise.all(wrong)).toContain(401)
    expect(await publish(`${token}x`, "news", other)).toBe(429)
    // The verdict is used for half a second: then the token is read again.
    await elapsed(600)
    expect(await publish(token, "news", other)).toBe(202)
  })

  it("is made only with a name, channels and an end", async () => {
    for (const [name, channel, expires, said] of [
      ["a.b", "news", "1d", /the name of a token has/],
      ["fine", "news/eu", "1d", /no slash/],
      ["fine", "news", "soon", /such as 90d/]
    ] as const) {
      const made = await cli("create", name, "--channel", channel, "--expires", expires)
      expect(made).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(said) })
    }
    expect((await cli("create", "fine", "--expires", "1d")).code).toBe(1)
    expect((await cli("create", "fine", "--channel", "news")).code).toBe(1)
  })
})

describe("a token that is made while no projection runs", () => {
  it("works once one runs", async () => {
    const before = await create("before")
    await service.stop()
    const [made, revoked] = await Promise.all([
      cli("create", "late", "--channel", "news", "--expires", "never"),
      cli("revoke", "before")
    ])
    expect(made).toMatchObject({ code: 0, stderr: expect.stringMatching(/no projection runs/) })
    expect(revoked).toMatchObject({ code: 1, stderr: expect.stringMatching(/takes effect once/) })
    service = await start("gateway,projection")
    // Resolves once the projection has begun.
    await create("after")
    expect([await publish(made.stdout.trimEnd()), await publish(before)]).toEqual([202, 401])
  })
})
