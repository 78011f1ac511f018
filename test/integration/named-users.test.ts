// Requests that name a user, with ids of any characters and with mail addresses: the right user is
// found, and no address is logged or stored.
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { type Acme, startAcme } from "../support/identity/acme.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { createToken, runCli } from "../support/run-cli.ts"
import { storedText } from "../support/stored-text.ts"

let acme: Acme
let push: PushService

beforeAll(async () => {
  push = await startPushService()
  acme = await startAcme({
    BELLCAST_AUTH_POLICIES: "acme=./acme.mjs token",
    BELLCAST_USER_WRITE_PRINCIPALS: "acme:site@example.org group:acme:servers"
  })
})
afterAll(async () => {
  for (const each of [acme, push]) await each?.[Symbol.asyncDispose]()
})

const send: Acme["send"] = (...request) => acme.send(...request)
/** Credentials travel in a header, which takes no other characters than ASCII. */
const as = (user: string) =>
  /^[\x20-\x7e]+$/.test(user) ? `acme ${user}` : `acme =${Buffer.from(user).toString("base64url")}`
const logout = (userId: string, by: string) =>
  send("DELETE", `/users/${encodeURIComponent(userId)}/subscriptions`, by)
const site = "acme site@example.org"

const logged = (text: string) =>
  vi.waitFor(() => expect(acme.service.output()).toContain(text), { timeout: 5_000 })

const subscribed = async (user: string) => {
  const data = push.subscribe().subscription
  const { status } = await send("POST", "/subscriptions", as(user), { data })
  expect(status).toBe(201)
}

describe("a user whom a request names", () => {
  it.for([
    "a/b",
    "auth0/5f/../7",
    "..",
    "https://acme.example/users?id=1#x",
    "100%25",
    "a+b;c,d*e>f.g",
    "x:y",
    "zoë",
    "用户/7",
    "😀",
    '"quoted"\\'
  ])("is found by the id %s", async (user) => {
    await subscribed(user)
    const { body, status } = await logout(`acme:${user}`, site)
    expect([status, body.data?.length]).toEqual([200, 1])
    const own = await send("GET", "/subscriptions", as(user))
    expect(own.body.data).toEqual([])
    const to = { users: [`acme:${user}`] }
    expect((await send("POST", "/broadcasts", site, { to, dry_run: true })).status).toBe(200)
  })

  it("is found in an entry of a batch, too", async () => {
    await subscribed("a/b c")
    const path = `/users/${encodeURIComponent("acme:a/b c")}/subscriptions`
    const requests = [{ method: "DELETE", path }]
    const { body } = await send("POST", "/batch", site, { requests })
    expect(body.responses[0]).toMatchObject({ status: 200, body: { data: [{ deleted: true }] } })
  })

  it("is found by a mail address in any case of letters, which is nowhere stored", async () => {
    await subscribed("Anna@Example.org")
    const answer = await logout("acme:anna@EXAMPLE.org", site)
    expect([answer.status, answer.body.data.length]).toEqual([200, 1])
    await subscribed("Anna@Example.org")
    const raw = await send("DELETE", "/users/acme:anna@example.org/subscriptions?_limit=9", site)
    expect(raw.body.data).toHaveLength(1)
    await logged('/v1/users/…/subscriptions","querystring":"_limit=9"')
    const twice = encodeURIComponent(encodeURIComponent("acme:anna@example.org"))
    for (const path of [`/users/${twice}/subscriptions`, `/channels/news/members/${twice}`])
      expect((await send("DELETE", path, site)).status).toBe(400)
    await logged("/v1/channels/news/members/…")
    for (const text of [acme.service.output(), await storedText(acme.nats.url)])
      expect(text).not.toMatch(/anna(@|%(25)*40)example/i)
  })

  it("is found by the id that the user sees", async () => {
    await subscribed("eve@example.org")
    const { body } = await send("GET", "/", "acme eve@example.org")
    expect(body.user.id).toMatch(/^acme:@[0-9a-f]{64}$/)
    expect((await logout(body.user.id, site)).body.data).toHaveLength(1)
    await logged(`/v1/users/${encodeURIComponent(body.user.id)}/`)
  })

  it.for([
    "acme:",
    `acme:${"x".repeat(201)}`,
    "acme:a\u0000b",
    "acmee:x",
    "basicauth:x",
    "token:x"
  ])("is none with the id %j", async (userId) => {
    const { body, status } = await logout(userId, site)
    expect([status, body.details[0].location]).toEqual([400, "path"])
  })
})

describe("the right to name users", () => {
  it("is that of the principals in the setting alone", async () => {
    for (const [by, status] of [
      [site, 200],
      ["acme bob|servers", 200],
      ["acme bob|readers", 403],
      ["acme bob", 403],
      ["acme servers", 403]
    ] as const)
      expect((await logout("acme:x", by)).status, by).toBe(status)
  })

  it("is that of tokens which were made with it, and gives them nothing else", async () => {
    const make = async (name: string, ...args: ReadonlyArray<string>) => {
      const { said, token } = await createToken(acme.nats.url, name, ...args)
      return { said, by: `Bearer ${token}` }
    }
    const users = await make("logout", "--users")
    const both = await make("shop", "--users", "--channel", "news")
    const channels = await make("news", "--channel", "news")
    expect(users.said).toMatch(/whoever has this token may name any user until /)
    expect(both.said).toMatch(/may publish on news and name any user until /)
    const statuses = async (by: string) => [
      (await logout("acme:x", by)).status,
      (await send("POST", "/channels/news", by, {})).status,
      (await send("GET", "/subscriptions", by)).status,
      (await send("PUT", "/channels/news/registration", by)).status
    ]
    expect(await statuses(users.by)).toEqual([200, 403, 403, 403])
    expect(await statuses(both.by)).toEqual([200, 202, 403, 403])
    expect(await statuses(channels.by)).toEqual([403, 202, 403, 403])
    const { stdout } = await runCli(["token", "list", "--json", "--nats", acme.nats.url])
    expect(stdout).toMatch(/"name":"shop","channels":\["news"\],"users":true/)
  })
})
