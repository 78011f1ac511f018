// All that is stored about one user, for an answer to a demand of access: every message and entry
// that names the user, and nothing of others.
import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { jetstream } from "@nats-io/jetstream"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { call, finishedAt, publishAt, until } from "../support/client.ts"
import { temporaryFolder } from "../support/folder.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { permit, runCli } from "../support/run-cli.ts"
import { type Service, secretEnvironment, startService } from "../support/service.ts"
import { inMillis } from "../support/times.ts"
import { idOf, tokenOf } from "../support/users.ts"

let nats: TestNats
let push: PushService
let service: Service

beforeAll(async () => {
  nats = await startNats({ syncAlways: false })
  push = await startPushService()
  service = await startService({
    natsUrl: nats.url,
    env: {
      BELLCAST_OPERATOR_PRINCIPALS: idOf("operator"),
      BELLCAST_USER_WRITE_PRINCIPALS: idOf("publisher")
    }
  })
}, 120_000)
afterAll(async () => {
  for (const each of [service, push, nats]) await each?.[Symbol.asyncDispose]()
})

const request = (method: string, path: string, user: string, body?: unknown) =>
  until(
    () => call(service.url, method, path, user, body),
    ({ status }) => status >= 200 && status < 300
  )

const exported = (...args: ReadonlyArray<string>) =>
  runCli(["export", ...args, "--nats", nats.url], secretEnvironment)

interface Line {
  readonly stream: string
  readonly sequence: number
  readonly time: string
  readonly subject: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: { readonly principal?: string }
}

const allOf = async (user: string): Promise<ReadonlyArray<Line>> => {
  const file = join(await temporaryFolder(), "all.ndjson")
  const { code, stderr, stdout } = await exported(file, "--user", idOf(user), "--all")
  assert.deepEqual([code, stdout], [0, ""], stderr)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const lines = readFileSync(file, "utf8").trimEnd().split("\n")
  assert.include(stderr, `${lines.length} messages and entries`)
  assert.notInclude(stderr, "://")
  return lines.map((line) => JSON.parse(line))
}

/** A browser of a user, which another one replaces if `former`. */
const subscribe = async (user: string, isFormer = false) => {
  const { subscription } = push.subscribe()
  // A page may store anything in a subscription.
  const data = { ...subscription, label: `${user}'s`, invited: { by: idOf("ann") } }
  const { id } = (await request("POST", "/subscriptions", user, { data })).body.data
  if (isFormer) await request("DELETE", `/subscriptions/${id}`, user)
  return subscription
}

describe("an export of all", { timeout: 120_000 }, () => {
  it("has all that names the user, also what is over, and nothing of others", async () => {
    const former = await subscribe("ann", true)
    await subscribe("ann")
    const bobs = await subscribe("bob")
    await permit(nats.url, "grant", "news", "bob")
    await permit(nats.url, "grant", "news", "ann")
    for (const user of ["ann", "bob"]) {
      await request("PUT", "/channels/news/registration", user)
      await request("PUT", "/channels/left/registration", user)
    }
    await request("DELETE", "/channels/left/registration", "ann")
    const people = ["ann", "bob"].map(idOf)
    const more = Array.from({ length: 998 }, (_, n) => idOf(`user${n}`))
    const letter = { data: { n: "for ann alone" }, to: { users: [idOf("ann")] } }
    const alone = await publishAt(service.url, "/broadcasts", letter)
    // The recipients are in two messages, the variants in the last.
    const many = await publishAt(service.url, "/broadcasts", {
      data: { n: "for many" },
      data_by_locale: { de: { n: "für viele" } },
      to: { users: [...more, ...people] }
    })
    const late = { ...letter, data: { n: "first" }, at: inMillis(3_600_000) }
    const waiting = await publishAt(service.url, "/broadcasts", late)
    const changed = { data: { data: { n: "changed text" } } }
    await request("PATCH", `/broadcasts/${waiting}`, "publisher", changed)
    await finishedAt(service.url, `/broadcasts/${alone}`, "publisher")
    await finishedAt(service.url, `/broadcasts/${many}`, "publisher")
    await request("POST", "/channels/news", "ann", { data: { n: "by ann" } })
    await request("PUT", "/drafts/for-both", "publisher", { data: { to: { users: people } } })
    await request("PUT", "/drafts/of-ann", "ann", { data: { data: { n: "a draft" } } })
    await request("GET", `/users/${encodeURIComponent(idOf("ann"))}`, "operator")

    const lines = await allOf("ann")
    const text = lines.map((line) => JSON.stringify(line)).join("\n")
    for (const part of [
      ...[former.endpoint, former.keys.auth, former.keys.p256dh, "ann's"],
      ...["for ann alone", "for many", "für viele", "changed text", "by ann", "a draft"],
      ...[`bellcast.cmd.registration.left.${tokenOf("ann")}`, "bellcast.cmd.publisher.news"],
      ...[`bellcast.look.${tokenOf("ann")}`, "for-both", "$KV.bellcast_drafts."]
    ])
      assert.include(text, part)
    for (const other of [bobs.endpoint, bobs.keys.auth, "bob's", idOf("bob"), tokenOf("bob")])
      assert.notInclude(text, other)
    assert.notInclude(text, tokenOf("user7"))
    const grant = lines.find(({ subject }) => subject === "bellcast.cmd.publisher.news")
    assert.equal(grant!.body!.principal, idOf("ann"))
    assert.match(grant!.time, /^\d{4}-\d\d-\d\dT/)
    const streams = new Set(lines.map(({ stream }) => stream))
    for (const name of ["subscriptions", "registrations", "permissions", "drafts"])
      assert.isTrue(streams.has(`KV_bellcast_${name}`), name)
    assert.isTrue(streams.has("BELLCAST_WORK"))
  })

  it("leaves out what an operator did to others", async () => {
    await request("GET", `/users/${encodeURIComponent(idOf("bob"))}`, "operator")
    const path = `/users/${encodeURIComponent(idOf("bob"))}/subscriptions`
    await request("DELETE", path, "publisher")
    for (const user of ["operator", "publisher"]) {
      const text = JSON.stringify(await allOf(user))
      assert.include(text, "=another")
      assert.notInclude(text, tokenOf("bob"))
      assert.notInclude(text, idOf("bob"))
    }
  })

  it("has a message whose body is no object", async () => {
    const grant = ["permissions", "grant", "news", idOf("zoe"), "--nats", nats.url]
    assert.equal((await runCli(grant, secretEnvironment)).code, 0)
    await using admin = await connectAdmin(nats.url)
    const subject = `bellcast.cmd.subscription.${tokenOf("zoe")}`
    for (const body of ["null", "7", "no JSON"]) await jetstream(admin.nc).publish(subject, body)
    const own = (await allOf("zoe")).filter((line) => line.subject === subject)
    const bodies: ReadonlyArray<unknown> = own.map(({ body }) => body)
    assert.deepEqual(bodies, [null, 7, "no JSON"])
  })

  it("needs a user, by id", async () => {
    const alone = await exported("-", "--all")
    assert.deepEqual([alone.code, alone.stdout], [1, ""])
    assert.include(alone.stderr, "add --user USER")
    const pseudonym = await exported("-", "--all", "--user", tokenOf("ann"))
    assert.deepEqual([pseudonym.code, pseudonym.stdout], [1, ""])
    assert.include(pseudonym.stderr, "needs the user's id")
  })

  it("knows a user from one whose id begins alike", async () => {
    const grant = ["permissions", "grant", "news", "signed:42", "--nats", nats.url]
    assert.equal((await runCli(grant, secretEnvironment)).code, 0)
    const known = await exported("-", "--all", "--user", "signed:42")
    assert.include(known.stdout, '"principal":"signed:42"')
    const { code, stdout } = await exported("-", "--all", "--user", "signed:4")
    assert.deepEqual([code, stdout.trim()], [0, ""])
  })
})
