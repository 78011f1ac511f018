// Members, whom a site's server registers: the rights that this takes, the limits that it counts
// for, and pages that list each of very many members once. And the channels of one user, in pages.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { until } from "../support/client.ts"
import { type Acme, startAcme } from "../support/identity/acme.ts"
import { createToken, runCli } from "../support/run-cli.ts"
import type { Service } from "../support/service.ts"
import { UserAgent } from "../support/user-agent.ts"
import { pseudonymOf } from "../support/users.ts"

let acme: Acme
/** A gateway with limits so low that a few changes reach them. */
let narrow: Service

beforeAll(async () => {
  acme = await startAcme({
    BELLCAST_AUTH_POLICIES: "acme=./acme.mjs token",
    BELLCAST_CHANNEL_WRITE_PRINCIPALS:
      "news*=acme:site other=acme:site all=group:acme:all acme:writer",
    BELLCAST_USER_WRITE_PRINCIPALS: "acme:site group:acme:all acme:users",
    BELLCAST_REQUESTS_PER_USER_PER_MINUTE_MAX: "0",
    BELLCAST_NEW_CHANNELS_PER_HOUR_MAX: "0"
  })
  narrow = await acme.startGateway({
    BELLCAST_MEMBERS_PER_CALLER_PER_HOUR_MAX: "3",
    BELLCAST_CHANGES_PER_USER_PER_HOUR_MAX: "1",
    BELLCAST_CHANGES_PER_ADDRESS_PER_HOUR_MAX: "1",
    BELLCAST_NEW_CHANNELS_PER_HOUR_MAX: "1",
    BELLCAST_REGISTRATIONS_PER_USER_MAX: "2"
  })
})
afterAll(() => acme?.[Symbol.asyncDispose]())

const send: Acme["send"] = (...request) => acme.send(...request)
const member = (method: string, channel: string, user: string, by = "acme site", at?: Service) => {
  const path = `/channels/${channel}/members/${encodeURIComponent(`acme:${user}`)}`
  return send(method, path, by, undefined, at)
}

describe("members", () => {
  it("need the right to publish on the channel and the right to name users, both", async () => {
    const tokens = await Promise.all(
      [
        ["both", "--users", "--channel", "news"],
        ["users", "--users"],
        ["elsewhere", "--users", "--channel", "other"],
        ["channel", "--channel", "news"]
      ].map(async ([name, ...args]) => {
        const { token } = await createToken(acme.nats.url, name!, ...args)
        return `Bearer ${token}`
      })
    )
    const [both, users, elsewhere, channel] = tokens as [string, string, string, string]
    for (const [by, status] of [
      ["acme site", 202],
      ["acme ann|all", 403],
      ["acme users", 403],
      ["acme writer", 403],
      ["acme ann", 403],
      [both, 202],
      [users, 403],
      [elsewhere, 403],
      [channel, 403],
      ["Nobody x", 401]
    ] as const) {
      expect((await member("PUT", "news", "ann", by)).status, by).toBe(status)
      expect(await acme.isRegistered("news", "ann"), by).toBe(status === 202)
      const list = await send("GET", "/channels/news/members", by)
      expect(list.status, by).toBe(status === 202 ? 200 : status)
      await member("DELETE", "news", "ann")
      expect((await member("DELETE", "news", "ann", by)).status, by).toBe(status)
    }
    expect((await member("PUT", "all", "ann", "acme ann|all")).status).toBe(202)
  })

  it.for(["a/b", "a.b>c*d", "ann@example.org", "100%25", "..", "x".repeat(200)])(
    "may have the id %s",
    async (user) => {
      expect((await member("PUT", "news-ids", user)).status).toBe(202)
      expect(await acme.isRegistered("news-ids", user)).toBe(true)
      const { body } = await send("GET", "/", `acme ${user}`)
      const listed = await send("GET", "/channels/news-ids/members", "acme site")
      expect(listed.body).toEqual({ data: [{ id: body.user.id }] })
      expect((await member("DELETE", "news-ids", user)).status).toBe(202)
    }
  )

  it("count for the caller who registers them, and for nobody else", async () => {
    const put = (channel: string, user: string) => member("PUT", channel, user, "acme site", narrow)
    expect((await put("news-1", "ivy")).status).toBe(202)
    expect((await put("news-2", "ivy")).status).toBe(202)
    // A registration that is there already counts as none.
    expect((await put("news-2", "ivy")).status).toBe(202)
    // The user's own limit of registrations holds.
    expect((await put("news-3", "ivy")).status).toBe(429)
    expect((await put("news-3", "ida")).status).toBe(202)
    const last = await put("news-3", "ina")
    expect([last.status, last.body.error_code]).toEqual([429, "too-many-members"])
    expect(Number(last.headers.get("retry-after"))).toBeGreaterThan(60)
    expect((await member("DELETE", "news-3", "ida", "acme site", narrow)).status).toBe(202)
    // Neither the user nor the address has spent anything.
    const own = await send("PUT", "/channels/own/registration", "acme ina", undefined, narrow)
    expect(own.status).toBe(202)
  })

  it("are listed once each, also 1,100 of them, in pages of 250", {
    timeout: 120_000
  }, async () => {
    const users = Array.from({ length: 1_100 }, (_, i) => `user-${i}`)
    const rest = [...users]
    const work = async () => {
      for (let user = rest.pop(); user !== undefined; user = rest.pop()) {
        // 503: on a busy machine the projection may take longer than a request waits.
        await until(
          () => member("PUT", "other", user!),
          ({ status }) => status === 202
        )
      }
    }
    await Promise.all(Array.from({ length: 8 }, work))
    const ids: Array<string> = []
    let path = "/channels/other/members?_limit=0"
    for (let pages = 1; path !== ""; pages++) {
      const { body, headers, status } = await send("GET", path, "acme site")
      expect([status, headers.get("total-records")]).toEqual([200, "1100"])
      expect(body.data.length).toBe(pages < 5 ? 250 : 100)
      ids.push(...body.data.map(({ id }: { readonly id: string }) => id))
      path = (headers.get("next-page") ?? "").slice(acme.service.url.length)
    }
    expect(ids.sort()).toEqual(users.map((user) => `acme:${user}`).sort())
  })
})

it("the channels of a user are listed in order of registration, 100 on a page", async () => {
  const registration = (method: string, channel: string) =>
    send(method, `/channels/${channel}/registration`, "acme zoe")
  const channels = Array.from({ length: 130 }, (_, i) => `room-${i}`)
  for (const channel of channels) expect((await registration("PUT", channel)).status).toBe(202)
  // Leaving and coming back makes a new registration; a repeated PUT does not.
  await registration("DELETE", "room-5")
  await registration("PUT", "room-5")
  await registration("PUT", "room-6")
  await registration("DELETE", "room-7")
  const wanted = [...channels.filter((each) => !/^room-[57]$/.test(each)), "room-5"]
  const first = await send("GET", "/registrations?_limit=0", "acme zoe")
  const next = first.headers.get("next-page")!.slice(acme.service.url.length)
  const second = await send("GET", next, "acme zoe")
  expect([first.body.data.length, first.headers.get("total-records")]).toEqual([100, "129"])
  expect([...first.body.data, ...second.body.data]).toEqual(wanted.map((id) => ({ id })))
  expect(second.headers.get("next-page")).toBeNull()
})

it("the audit names who registered a user, ended it, and removed their subscriptions", async () => {
  const data = new UserAgent("https://updates.push.services.mozilla.com/wpush/v2/eva", {})
    .subscription
  const stored = await send("POST", "/subscriptions", "acme eva", { data })
  expect(stored.status).toBe(201)
  for (const method of ["PUT", "DELETE"])
    expect((await member(method, "news", "eva")).status).toBe(202)
  // Changes that users make themselves are no lines.
  for (const method of ["PUT", "DELETE"])
    expect((await send(method, "/channels/news/registration", "acme eva")).status).toBe(202)
  const removed = await send("DELETE", "/users/acme%3Aeva/subscriptions", "acme site")
  expect(removed.body.data).toHaveLength(1)
  const args = ["audit", "--user", pseudonymOf("acme:eva"), "--json", "--nats", acme.nats.url]
  const lines = (await runCli(args)).stdout.trim().split("\n")
  const changes = lines.map((line) => JSON.parse(line)).map(({ at: _, ...rest }) => rest)
  const by = "acme:site"
  expect(changes).toEqual([
    { change: "registered", by, channel: "news" },
    { change: "unregistered", by, channel: "news" },
    { change: "removed", by, subscription: stored.body.data.id }
  ])
})
