// Answers of `--at` about an earlier moment: the same as a rebuild of LOG as it was then, and as
// the service did.
import { setTimeout as sleep } from "node:timers/promises"
import { jetstream } from "@nats-io/jetstream"
import { headers } from "@nats-io/transport-node"
import { Effect, Layer } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { channelsOfUserAt, grantsAt, listsOf, membersAt } from "#history/past.ts"
import { natsLayer } from "#nats/layer.ts"
import { storedForm } from "#streams/index.ts"
import { filters } from "#streams/subjects.ts"
import { administer, quiet, rebuildAt, useHistory } from "#test/history.ts"
import { call, finished, finishedAt, join, publish, publishAt } from "../support/client.ts"
import { channels, userOf } from "../support/history-commands.ts"
import { messagesOf, openKept } from "../support/kept-store.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { permit, runCli } from "../support/run-cli.ts"
import { type Service, secretEnvironment, startService } from "../support/service.ts"
import { idOf, tokenOf } from "../support/users.ts"

const shared = useHistory()

const users = Array.from({ length: 12 }, (_, n) => userOf(n))

/** LOG of the history about everybody, after a message. */
const saidAt = (url: string, seq: number) =>
  Effect.gen(function* () {
    const moment = { seq }
    const members: Record<string, ReadonlyArray<string>> = {}
    for (const channel of channels) {
      const found = yield* membersAt(channel, moment)
      members[channel] = [...found.parts()]
        .flat()
        .map(({ user }) => user)
        .sort()
      assert.equal(found.count, members[channel].length)
    }
    const joined: Record<string, ReadonlyArray<string>> = {}
    const lists: Record<string, unknown> = {}
    for (const user of users) {
      for (const { channel } of yield* channelsOfUserAt(user, moment))
        joined[channel] = [...(joined[channel] ?? []), user].sort()
      lists[user] = (yield* listsOf(user))(seq).subscriptions
    }
    const grants = [...(yield* grantsAt(undefined, moment))]
    return { members, joined, lists, grants }
  }).pipe(
    Effect.scoped,
    Effect.provide(Layer.merge(natsLayer({ url, name: "past" }), quiet)),
    Effect.runPromise
  )

/** The first sequence from one on at which no move is under way: a rebuild completes those. */
const settledFrom = async (url: string, from: number): Promise<number> => {
  const { lists } = await saidAt(url, from)
  const endpoints = Object.values(lists).flatMap((list) =>
    Object.values(list as Record<string, { data: { endpoint: string } }>).map(
      ({ data }) => data.endpoint
    )
  )
  return new Set(endpoints).size === endpoints.length ? from : settledFrom(url, from + 1)
}

/** The buckets that a rebuild makes of the first messages of LOG, on another server. */
const rebuiltAt = async (url: string, seq: number) => {
  await using original = await connectAdmin(url)
  const log = (await messagesOf(original, "BELLCAST_LOG")).filter((each) => each.seq <= seq)
  await using nats = await startNats({ syncAlways: false })
  await using admin = await administer(nats.url)
  const rest = { buckets: {}, views: [], env: {}, pushPort: 1, redrivable: "" }
  await openKept(nats.url, admin, { form: storedForm.streams, log, work: [], ...rest })
  await rebuildAt(nats.url)
  return Object.entries(await admin.entries()).map(([subject, text]) => {
    const [, , bucket = "", key = ""] = /^(\$KV\.bellcast_)(\w+)\.(.*)$/.exec(subject) ?? []
    return { bucket, key, value: JSON.parse(text) }
  })
}

describe("what LOG said at a moment", { timeout: 120_000 }, () => {
  it.each([1, 40, 120, 200, 250, "all"])("is what a rebuild made of it: %s messages", async (n) => {
    const { lastCommand, url } = shared.history
    const seq = await settledFrom(url, n === "all" ? lastCommand : Number(n))
    const { grants, joined, lists, members } = await saidAt(url, seq)
    const entries = await rebuiltAt(url, seq)
    const stored: Record<string, ReadonlyArray<string>> = {}
    for (const { bucket, key, value } of entries) {
      if (bucket !== "registrations" || key.startsWith("=users.") || value.on !== true) continue
      const [channel = "", user = ""] = [key.split(".")[0], key.split(".").at(-1)]
      stored[channel] = [...(stored[channel] ?? []), user].sort()
    }
    for (const channel of channels) assert.deepEqual(members[channel], stored[channel] ?? [])
    assert.deepEqual(joined, stored)
    for (const user of users) {
      const entry = entries.find(({ bucket, key }) => bucket === "subscriptions" && key === user)
      assert.deepEqual(lists[user], entry?.value.subscriptions ?? {}, user)
    }
    const granted = entries.filter(({ key }) => key.endsWith(".publishers"))
    assert.deepEqual(
      granted.map(({ key, value }) => [key, value.principals, value.registrars]).sort(),
      grants
        .map(([channel, { principals, registrars }]) => [
          ...[`${channel}.publishers`, principals, registrars]
        ])
        .sort()
    )
    if (n === "all") assert.isNotEmpty(granted)
  })
})

describe("--at", { timeout: 120_000 }, () => {
  let nats: TestNats
  let push: PushService
  let service: Service
  /** Between the two halves of the history. */
  let may: string
  let ids: Readonly<Record<"both" | "first" | "named" | "second", number>>
  /** After all broadcasts of the history. */
  let sent: string
  const anna = idOf("user0")
  beforeAll(async () => {
    nats = await startNats()
    push = await startPushService()
    const env = {
      BELLCAST_USER_WRITE_PRINCIPALS: idOf("publisher"),
      BELLCAST_OPERATOR_PRINCIPALS: idOf("operator"),
      BELLCAST_LOG_REQUESTS: "false"
    }
    service = await startService({ natsUrl: nats.url, env })
    const { url } = service
    await join([url], "news", [push.subscribe().subscription, push.subscribe().subscription])
    await permit(nats.url, "grant", "news", "user0")
    const first = await publish(url, "news", { n: 1 })
    await finished(url, "news", first)
    await sleep(20)
    may = new Date().toISOString()
    await sleep(20)
    await permit(nats.url, "revoke", "news", "user0")
    await call(url, "DELETE", "/channels/news/registration", "user0")
    const second = await publish(url, "news", { n: 2 })
    await finished(url, "news", second)
    const to = { users: [anna] }
    const named = await publishAt(url, "/broadcasts", { data: { n: 3 }, to })
    await finishedAt(url, `/broadcasts/${named}`)
    const more = push.subscribe().subscription
    const added = await call(url, "POST", "/subscriptions", "user0", { data: more })
    assert.equal(added.status, 201)
    const users = [anna, idOf("user1")]
    const both = await publishAt(url, "/broadcasts", { data: { n: 4 }, to: { users } })
    await finishedAt(url, `/broadcasts/${both}`)
    await sleep(20)
    sent = new Date().toISOString()
    await call(url, "DELETE", "/subscriptions", "user0")
    const [a, b, c, d] = [first, second, named, both].map(Number)
    ids = { first: a!, second: b!, named: c!, both: d! }
  })
  afterAll(async () => {
    for (const each of [service, push, nats]) await each?.[Symbol.asyncDispose]()
  })

  const run = (...args: ReadonlyArray<string>) =>
    runCli([...args, "--nats", nats.url], secretEnvironment)
  const lines = async (...args: ReadonlyArray<string>) => {
    const { code, stderr, stdout } = await run(...args, "--json")
    assert.equal(code, 0, stderr)
    return stdout
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line))
  }

  it("shows a channel with its members, as it was", async () => {
    const [channel, ...members] = await lines("channel", "show", "news", "--at", may)
    assert.deepInclude(channel, { id: "news", registrations: 2, publishers: [anna] })
    assert.equal(channel.erased_since, 0)
    assert.deepEqual(
      channel.broadcasts.map(({ id }: { id: string }) => Number(id)),
      [ids.first]
    )
    const found = members.map(({ id, user }) => `${id} ${user}`).sort()
    const expected = ["user0", "user1"].map((name) => `${idOf(name)} ${tokenOf(name)}`)
    assert.deepEqual(found, expected)
    const now = await lines("channel", "show", "news", "--at", new Date().toISOString())
    assert.deepEqual([now[0].registrations, now.length], [1, 2])
    const { stdout } = await run("channel", "show", "news", "--at", may)
    assert.match(stdout, /registrations {2}2\n/)
    assert.match(stdout, /^may register {3}everybody, unless the settings close it$/m)
    assert.match(stdout, new RegExp(`Z {2}${tokenOf("user1")} {2}${idOf("user1")}\n`))
    assert.notInclude(stdout, push.origin)
  })

  it("shows a user with devices, channels and rights, as they were", async () => {
    const [then] = await lines("user", "show", anna, "--at", may)
    assert.deepInclude(then, { id: anna, registrations: 1 })
    assert.deepEqual(then.grants, [{ channel: "news", right: "publish" }])
    assert.equal(then.channels[0].id, "news")
    assert.equal(then.devices[0].host, "127.0.0.1")
    assert.notInclude(JSON.stringify(then), push.origin)
    const [now] = await lines("user", "show", anna, "--at", new Date().toISOString())
    assert.deepEqual([now.devices, now.channels, now.grants], [[], [], []])
    const { stdout } = await run("user", "show", anna, "--at", may)
    assert.match(stdout, /may {8}publish on news; groups and settings may say more/)
    const byPseudonym = ["user", "show", tokenOf("user0"), "--at", may, "--nats", nats.url]
    const known = await runCli(byPseudonym, secretEnvironment)
    assert.match(known.stdout, /may {8}publish on news; /)
    const unknown = await runCli(byPseudonym)
    assert.match(
      unknown.stdout,
      /may {8}is not known of a pseudonym without the service's user id secret/
    )
  })

  it("lists grants as they were", async () => {
    const [grant] = await lines("permissions", "list", "--at", may)
    assert.deepEqual(grant, { channel: "news", principal: anna, right: "publish" })
    assert.deepEqual(await lines("permissions", "list"), [])
  })

  it("says what a user should have got, and why", async () => {
    const now = new Date().toISOString()
    const [, named, second, first] = await lines("audit", "--user", anna, "--at", now)
    assert.deepInclude(first, { broadcast: ids.first, should: true, channel: "news" })
    assert.match(first.why, /^registered on news since 20/)
    assert.lengthOf(first.devices, 1)
    const why = "not registered when it started"
    assert.deepInclude(second, { broadcast: ids.second, should: false, why })
    const byName = { should: true, why: "the broadcast names the user" }
    assert.deepInclude(named, { broadcast: ids.named, ...byName, outcomes: ["delivered"] })
    assert.lengthOf(await lines("audit", "--user", anna, "--at", may), 1)
    const { stdout } = await run("audit", "--user", anna, "--at", now)
    assert.match(stdout, /news +finished +no +0 +not registered when it started/)
  })

  it("knows when a broadcast started, and not whom a redrive was for after weeks", async () => {
    const at = new Date(Date.now() + 1_500).toISOString()
    const planned = await publishAt(service.url, "/channels/news", { data: { n: 4 }, at })
    const before = new Date().toISOString()
    await finishedAt(service.url, `/broadcasts/${planned}`)
    const bob = idOf("user1")
    const [early] = await lines("audit", "--user", bob, "--at", before)
    assert.deepInclude(early, { should: false, why: "the broadcast had not started then" })
    const [late] = await lines("audit", "--user", bob, "--at", new Date().toISOString())
    assert.deepInclude(late, { broadcast: Number(planned), should: true })
    await using admin = await connectAdmin(nats.url)
    const typed = headers()
    typed.set("Bellcast-Type", "broadcast/1")
    typed.set("Bellcast-Redrives", String(planned))
    const { seq } = await jetstream(admin.nc).publish("bellcast.cmd.broadcast.redrive.news", "{}", {
      headers: typed
    })
    await finishedAt(service.url, `/broadcasts/${seq}`)
    // A message of the same millisecond is not before the time.
    await sleep(20)
    const [left] = await lines("audit", "--user", bob, "--at", new Date().toISOString())
    const why = "sent again to those whose push had failed"
    assert.deepInclude(left, { broadcast: seq, should: false, why })
    for (const filter of [filters.outcomesOf(seq), filters.planOf(seq)])
      await admin.jsm.streams.purge("BELLCAST_WORK", { filter })
    const [again] = await lines("audit", "--user", bob, "--at", new Date().toISOString())
    assert.notProperty(again, "should")
    assert.match(again.why, /^sent again to those whose push had failed: who they were/)
  })

  it("says to which devices a redrive went", async () => {
    const scripts = [["201"], ["400", "201"]]
    for (const script of scripts) {
      const data = push.subscribe({ script }).subscription
      assert.equal(
        (await call(service.url, "POST", "/subscriptions", "user7", { data })).status,
        201
      )
    }
    const to = { users: [idOf("user7")] }
    const first = await publishAt(service.url, "/broadcasts", { data: { n: 5 }, to })
    await finishedAt(service.url, `/broadcasts/${first}`)
    const { headers: answered } = await call(
      service.url,
      "POST",
      `/broadcasts/${first}/redrive`,
      "operator"
    )
    const redrive = answered.get("location")!.split("/").at(-1)
    await finishedAt(service.url, `/broadcasts/${redrive}`)
    await sleep(20)
    const user = idOf("user7")
    const [again, before] = await lines("audit", "--user", user, "--at", new Date().toISOString())
    assert.deepInclude(again, { broadcast: Number(redrive), should: true })
    assert.deepEqual([again.devices.length, before.devices.length], [1, 2])
  })

  it("refuses times that LOG cannot speak of, and flags that contradict each other", async () => {
    for (const [time, said] of [
      ["2099-01-01T00:00Z", /is to come/],
      [new Date(Date.now() - 24 * 3_600_000).toISOString(), /LOG begins at 20.*give that time/],
      ["2020-01-01T00:00Z", /is before the history, of which BELLCAST_HISTORY_DAYS .* give 20/]
    ] as const) {
      const { code, stderr } = await run("permissions", "list", "--at", time)
      assert.equal(code, 1)
      assert.match(stderr, said)
    }
    for (const args of [
      ["--user", anna, "--before", may],
      ["--user", anna, "--since", "2020-01-01T00:00Z"],
      [String(ids.first)]
    ])
      assert.equal((await run("audit", ...args, "--at", may)).code, 1)
  })

  it("says that a person was erased since", async () => {
    assert.equal((await run("user", "erase", anna)).code, 0)
    const [channel, ...members] = await lines("channel", "show", "news", "--at", may)
    assert.deepInclude(channel, { registrations: 1, erased_since: 1 })
    assert.lengthOf(members, 1)
    const shown = await run("channel", "show", "news", "--at", may)
    assert.match(
      shown.stdout,
      /^registrations {2}1; LOG no longer says it of 1 user of the service erased since/m
    )
    const [then] = await lines("user", "show", anna, "--at", may)
    assert.isNumber(then.erased)
    assert.equal(then.outcomes_until, then.erased + 35 * 86_400_000)
    assert.equal(then.pseudonym, tokenOf("user0"))
    assert.doesNotHaveAnyKeys(then, ["devices", "channels", "registrations"])
    const inWords = (await run("user", "show", anna, "--at", may)).stdout
    assert.match(inWords, /^erased {5}20/m)
    assert.notMatch(inWords, /devices|channels/)
  })

  it("shows and exports an erased person as one who was erased", async () => {
    const [now] = await lines("user", "show", anna)
    assert.isNumber(now.erased)
    assert.deepInclude(now, { pseudonym: tokenOf("user0"), devices: [], registrations: 0 })
    const { stdout } = await run("user", "show", anna)
    assert.match(stdout, /^erased {5}20\S+Z: LOG says nothing from before; outcomes of pushes/m)
    assert.include(stdout, `bellcast audit BROADCAST --user ${tokenOf("user0")}\n`)
    const { stderr } = await run("export", "-", "--user", anna)
    assert.match(stderr, /the user was erased 20\S+Z: LOG says nothing from before/)
    const [other] = await lines("user", "show", idOf("user1"))
    assert.notProperty(other, "erased")
    assert.notInclude((await run("export", "-", "--user", idOf("user1"))).stderr, "erased")
  })

  it("says neither yes nor no of a broadcast to an erased person", async () => {
    for (const at of [sent, new Date().toISOString()]) {
      const rows = await lines("audit", "--user", anna, "--at", at)
      const [both, erasure] = rows
      assert.lengthOf(rows, 2)
      const known = { why: "the user was erased since", outcomes: ["delivered", "delivered"] }
      assert.deepInclude(both, { broadcast: ids.both, ...known })
      assert.notProperty(both, "should")
      assert.notProperty(both, "devices")
      assert.isNumber(erasure.erased)
      assert.match(erasure.why, /^LOG no longer says which broadcasts to channels/)
      const { stdout } = await run("audit", "--user", anna, "--at", at)
      assert.match(stdout, /finished +- +- +the user was erased since\n/)
      assert.match(stdout, /^LOG no longer says .*\nthe user was erased 20\S+Z: /m)
    }
    // One from before all broadcasts that name the user.
    const { stdout } = await run("audit", "--user", anna, "--at", may)
    assert.match(stdout, /^LOG no longer says which broadcasts to channels/)
  })

  it("says that a person is being erased, while nobody works as projection", async () => {
    await service.stop()
    const bob = idOf("user1")
    await using admin = await connectAdmin(nats.url)
    const typed = headers()
    typed.set("Bellcast-Type", "user.erase/1")
    const body = JSON.stringify({ at: Date.now() })
    const subject = `bellcast.cmd.erase.${tokenOf("user1")}`
    await jetstream(admin.nc).publish(subject, body, { headers: typed })
    const { stdout } = await run("channel", "show", "news", "--at", may)
    assert.match(stdout, /^registrations {2}1; .* of 2 users of the service erased since/m)
    const [then] = await lines("user", "show", bob, "--at", may)
    assert.deepInclude(then, { under_way: true })
    assert.isNumber(then.erased)
    assert.match((await run("user", "show", bob, "--at", may)).stdout, /: that is under way, /)
  })
})
