// A user is erased: LOG, the buckets and the files of nats-server have nothing of the user any
// more, by subject or by sequence; nobody else lost anything; and the user may come back.
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { jetstream } from "@nats-io/jetstream"
import { headers } from "@nats-io/transport-node"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { call, finishedAt, publishAt, until } from "../support/client.ts"
import { expiringOf, inFiles, messagesOf } from "../support/erased.ts"
import { temporaryFolder } from "../support/folder.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { connectAdmin, type NatsAdmin } from "../support/nats-admin.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { type Service, secretEnvironment, startService } from "../support/service.ts"
import { inMillis } from "../support/times.ts"
import { idOf, tokenOf } from "../support/users.ts"

const needle = "nEEdle0fAPerson"
const isOk = ({ status }: { readonly status: number }) => status >= 200 && status < 300

let nats: TestNats
let push: PushService
let service: Service
let admin: NatsAdmin

beforeAll(async () => {
  nats = await startNats()
  push = await startPushService()
  service = await startService({
    natsUrl: nats.url,
    env: {
      BELLCAST_OPERATOR_PRINCIPALS: idOf("operator"),
      BELLCAST_USER_WRITE_PRINCIPALS: idOf("publisher"),
      BELLCAST_LOG_REQUESTS: "false",
      BELLCAST_RETRY_BASE_MILLIS: "6000"
    }
  })
  admin = await connectAdmin(nats.url)
}, 120_000)
afterAll(async () => {
  for (const each of [admin, service, push, nats]) await each?.[Symbol.asyncDispose]()
})

const request = (method: string, path: string, user: string, body?: unknown) =>
  until(() => call(service.url, method, path, user, body), isOk)

const base64 = Buffer.from(needle).toString("base64")

/** Stores a subscription with the needle in each member that takes one. */
const subscribe = async (user: string, revisions = 5) => {
  const { subscription } = push.subscribe()
  const endpoint = `${subscription.endpoint}?${needle}`
  const body = (n: number) => ({
    data: { ...subscription, endpoint, label: `${needle} ${n}`, more: { deep: [base64] } }
  })
  const { id } = (await request("POST", "/subscriptions", user, body(0))).body.data
  for (let n = 1; n < revisions; n++) await request("PUT", `/subscriptions/${id}`, user, body(n))
  return { ...subscription, endpoint }
}

const register = (user: string, channel: string) =>
  request("PUT", `/channels/${channel}/registration`, user)

const factOf = (user: string) =>
  admin.jsm.streams
    .getMessage("BELLCAST_LOG", { last_by_subj: `bellcast.evt.erased.${tokenOf(user)}` })
    .catch(() => null)

const erased = async (user: string, after = 0) =>
  until(
    () => factOf(user),
    (fact) => (fact?.seq ?? 0) > after
  )

/** Compares the buckets with the streams. */
const verify = async () => {
  const { code, stderr, stdout } = await runCli(["verify", "--nats", nats.url], secretEnvironment)
  assert.deepEqual([code, stderr], [0, ""], stdout)
}

const publish = (subject: string, type: string, body: unknown) => {
  const typed = headers()
  typed.set("Bellcast-Type", type)
  return jetstream(admin.nc).publish(subject, JSON.stringify(body), { headers: typed })
}

describe("an erasure", { timeout: 300_000 }, () => {
  it("leaves nothing of a channel once its last user has left", async () => {
    await register("cora", "clinic")
    await register("dana", "clinic")
    await request("DELETE", "/", "cora")
    await erased("cora")
    const begun = () =>
      admin.jsm.streams
        .getMessage("BELLCAST_LOG", { last_by_subj: "bellcast.cmd.begun.clinic" })
        .catch(() => null)
    assert.isNotNull(await begun())
    await request("DELETE", "/channels/clinic/registration", "dana")
    await until(begun, (found) => found === null)
    await verify()
  })

  it("leaves nothing of a user, and everything of others", async () => {
    await subscribe("ann")
    await subscribe("ann")
    await register("ann", "news")
    await register("bob", "news")
    await register("ann", "other")
    await register("bob", "other")
    await request("DELETE", "/channels/other/registration", "ann")
    await register("ann", "alone")
    assert.isAbove((await messagesOf(admin, [needle, base64])).length, 10)
    assert.property(inFiles(nats.folder!, needle), "BELLCAST_LOG")

    await request("DELETE", "/", "ann")
    assert.deepEqual((await request("GET", "/subscriptions", "ann")).body.data, [])
    assert.deepEqual((await request("GET", "/registrations", "ann")).body.data, [])
    await erased("ann")
    const left = await messagesOf(admin, [needle, base64, idOf("ann"), tokenOf("ann")])
    assert.deepEqual(
      left.map(({ subject }) => subject),
      [
        `bellcast.evt.erased.${tokenOf("ann")}`,
        // Empty: workers learn by it that there is nothing.
        `$KV.bellcast_subscriptions.${tokenOf("ann")}`
      ]
    )
    assert.include(left[1]!.text, '"subscriptions":{},"tombstones":{}')
    assert.deepEqual(await expiringOf(admin, [needle, base64, idOf("ann")]), [])
    assert.notProperty(inFiles(nats.folder!, needle), "BELLCAST_LOG")
    console.log("left in files:", inFiles(nats.folder!, needle))

    const registrations = await request("GET", "/registrations", "bob")
    assert.deepEqual(registrations.body.data, [{ id: "news" }, { id: "other" }])
    await verify()
  })

  it("lets the user come back", async () => {
    const { endpoint } = await subscribe("ann", 1)
    await register("ann", "news")
    const { body } = await request("GET", "/subscriptions", "ann")
    assert.deepEqual(
      body.data.map((each: { endpoint: string }) => each.endpoint),
      [endpoint]
    )
    await verify()
  })

  it("takes a fact that comes late along", async () => {
    const before = (await erased("ann"))!.seq
    await request("DELETE", `/users/${encodeURIComponent(idOf("ann"))}`, "operator")
    await erased("ann", before)
    const subject = `bellcast.cmd.subscription.${tokenOf("ann")}`
    await publish(subject, "subscription.gone/1", {
      ...{ id: needle, generation: 1, broadcast: 1, status: 410, cause: "gone", at: Date.now() }
    })
    await until(
      () => messagesOf(admin, [needle]),
      (left) => left.length === 0
    )
    await subscribe("ann", 1)
    await verify()
  })

  it("takes along what was for the user alone, and nothing that others get", async () => {
    await subscribe("ann", 1)
    const data = { n: needle }
    const publishTo = (users: ReadonlyArray<string>, more: object = {}) =>
      publishAt(service.url, "/broadcasts", { data, to: { users }, ...more })
    const sent = await publishTo([idOf("ann")])
    await finishedAt(service.url, `/broadcasts/${sent}`, "publisher")
    const waiting = await publishTo([idOf("ann")], { at: inMillis(3_600_000) })
    const shared = await publishTo([idOf("ann"), idOf("bob")])
    await finishedAt(service.url, `/broadcasts/${shared}`, "publisher")
    const draft = { data: { data, to: { users: [idOf("ann")] } } }
    await request("PUT", "/drafts/for-ann", "publisher", draft)
    const before = (await erased("ann"))!.seq
    await request("DELETE", "/", "ann")
    await erased("ann", before)
    const left = await until(
      () => messagesOf(admin, [needle]),
      (found) => found.length === 1
    )
    assert.deepEqual(
      left.map(({ seq }) => seq),
      [Number(shared)]
    )
    const statusOf = async (path: string) =>
      (await call(service.url, "GET", path, "publisher")).status
    await until(
      () => Promise.all([sent, waiting].map((id) => statusOf(`/broadcasts/${id}`))),
      (all) => all.every((status) => status === 404)
    )
    // Plans, jobs and outcomes have the pseudonym alone.
    assert.isAbove((await expiringOf(admin, [tokenOf("ann")])).length, 0)
    assert.deepEqual(await expiringOf(admin, [needle, base64, idOf("ann")]), [])
    assert.equal(await statusOf(`/broadcasts/${shared}`), 200)
    assert.equal(await statusOf("/drafts/for-ann"), 404)
    await verify()
  })

  it("lets no push go that waits for its next attempt", async () => {
    const agents = [push.subscribe({ script: ["503", "201"] }), push.subscribe()]
    for (const [n, user] of ["dan", "bob"].entries()) {
      const data = agents[n]!.subscription
      await request("POST", "/subscriptions", user, { data })
      await register(user, "waits")
    }
    const sent = await publishAt(service.url, "/channels/waits", { data: { n: 1 } })
    await until(
      () => call(service.url, "GET", `/broadcasts/${sent}`, "publisher"),
      ({ body }) => body.data?.retrying === 1
    )
    await request("DELETE", "/", "dan")
    await erased("dan")
    const counts = await finishedAt(service.url, `/broadcasts/${sent}`, "publisher")
    assert.deepInclude(counts, { delivered: 1, gone: 1 })
    assert.lengthOf(agents[0]!.attempts, 1)
    await verify()
  })

  it("is asked for by an operator or a caller with the right users, and nobody else", async () => {
    const path = `/users/${encodeURIComponent(idOf("ann"))}`
    assert.equal((await call(service.url, "DELETE", path, "bob")).status, 403)
    const before = (await erased("ann"))!.seq
    assert.equal((await call(service.url, "DELETE", path, "publisher")).status, 202)
    const fact = await erased("ann", before)
    assert.include(fact!.string(), `"by":"${idOf("publisher")}"`)
  })

  it("is asked for by a command, too, which waits until it is done", async () => {
    await subscribe("cleo", 1)
    const before = (await factOf("cleo"))?.seq ?? 0
    const { code, stderr } = await runCli(
      ["user", "erase", idOf("cleo"), "--nats", nats.url],
      secretEnvironment
    )
    assert.deepEqual([code, stderr], [0, ""])
    assert.isAbove((await factOf("cleo"))!.seq, before)
    const left = await messagesOf(admin, [idOf("cleo"), tokenOf("cleo")])
    assert.lengthOf(left, 2)
    await verify()
    const args = ["audit", "--user", tokenOf("cleo"), "--json", "--nats", nats.url]
    const { stdout } = await runCli(args, secretEnvironment)
    const [change] = stdout.trim().split("\n").slice(-1)
    assert.deepInclude(JSON.parse(change!), { change: "erased", by: "operator" })
  })

  it("names what it leaves of a user, and what ends that", async () => {
    const [eve, channel] = [idOf("eve"), "a'b c"]
    const env = { ...secretEnvironment, BELLCAST_CHANNEL_REGISTER_PRINCIPALS: "vip=" }
    const cli = async (...args: ReadonlyArray<string>) => {
      const { code, stderr, stdout } = await runCli([...args, "--nats", nats.url], env)
      assert.deepEqual([code, stderr], [0, ""])
      return stdout
    }
    await subscribe("eve", 1)
    await cli("permissions", "grant", channel, eve)
    await cli("permissions", "grant", "vip", eve, "--register")
    for (const [author, id, to] of [
      ["eve", "of-eve", { channels: [channel] }],
      ["publisher", "to-both", { users: [eve, idOf("bob")] }],
      ["publisher", "to-eve", { users: [eve] }]
    ] as const)
      await request("PUT", `/drafts/${id}`, author, { data: { data: { n: 1 }, to } })
    const path = `/channels/${encodeURIComponent(channel)}`
    const body = { data: { n: 1 }, at: inMillis(3_600_000) }
    const waiting = (await request("POST", path, "eve", body)).body.id
    const said = await cli("user", "erase", eve)
    assert.match(said, new RegExp(`^erased +${eve}\npseudonym +${tokenOf("eve")}\nat +20`))
    const [, rows = ""] = said.split("\n\n")
    const left = rows.split("\n").map((line) => line.trim().split(/ {2,}/))
    const [heading, [work, end] = [], ...rest] = left.filter((row) => row.length === 2)
    assert.deepEqual(heading, ["STAYS", "ENDS BY"])
    assert.equal(work, "outcomes of pushes, and looks, under the pseudonym")
    const days = (Date.parse(end!.replace("expiring until ", "")) - Date.now()) / 86_400_000
    assert.closeTo(days, 35, 0.1)
    assert.sameDeepMembers(rest, [
      [`grant: publish on ${channel}`, `bellcast permissions revoke 'a'\\''b c' ${eve}`],
      ["grant: register on vip", `bellcast permissions revoke vip ${eve} --register`],
      [`broadcast ${waiting} of the user, scheduled`, `bellcast broadcast cancel ${waiting}`],
      ["draft of-eve of the user", "bellcast draft delete of-eve"],
      ["draft to-both that names the user", "bellcast draft delete to-both"],
      [
        "what the user published, or others got, too; who had a right",
        `bellcast export FILE --user ${eve} --all shows it`
      ]
    ])
    const audit = ["audit", "--user", eve, "--channel", channel]
    const [erasure] = (await cli(...audit, "--json")).trim().split("\n").slice(-1)
    assert.hasAllKeys(JSON.parse(erasure!), ["erased", "outcomes_until", "why"])
    const inWords = new RegExp(`until 20\\S+Z: bellcast audit BROADCAST --user ${tokenOf("eve")}\n`)
    const text = await cli(...audit)
    assert.match(text, inWords)
    assert.notInclude(text, "no such broadcast")
    for (const [, command = ""] of rest.slice(2, -1)) await cli(...command.split(" ").slice(1))
    assert.notMatch(await cli("user", "erase", eve), /draft|scheduled/)
    const stranger = await runCli(["user", "erase", idOf("nobody"), "--nats", nats.url], env)
    assert.match(
      stranger.stderr,
      /LOG has no subscription and no registration of .*: check the name/
    )
  })

  it("is repeated for whom a list names and a restored LOG does not know", async () => {
    await subscribe("dora", 1)
    const verb = async (...args: ReadonlyArray<string>) => {
      const { code, stderr, stdout } = await runCli(
        ["user", ...args, "--nats", nats.url],
        secretEnvironment
      )
      assert.deepEqual([code, stderr], [0, ""])
      return stdout
    }
    const list = join(await temporaryFolder(), "erased.jsonl")
    const dora = { user: tokenOf("dora"), at: new Date().toISOString() }
    const known = (await verb("erased", "--json")).trim().split("\n")
    assert.isAbove(known.length, 2)
    writeFileSync(list, [...known, JSON.stringify(dora), ""].join("\n"))
    const restarted = await startService({
      natsUrl: nats.url,
      roles: "projection",
      env: { BELLCAST_ERASED_FILE: list }
    })
    const says = /LOG is older than .*erased\.jsonl, and has users again who were erased: 1\. Run/
    await until(
      async () => restarted.output(),
      (text) => says.test(text)
    )
    await restarted[Symbol.asyncDispose]()
    const users = new Set(known.map((line) => JSON.parse(line).user))
    const count = `of ${users.size + 1} erasures were repeated`
    const grant = ["permissions", "grant", "news", idOf("dora"), "--nats", nats.url]
    assert.equal((await runCli(grant, secretEnvironment)).code, 0)
    const draft = { data: { data: { n: 1 }, to: { channels: ["news"] } } }
    await request("PUT", "/drafts/of-dora", "dora", draft)
    const said = await verb("erase", "--repeat", list)
    assert.include(said, `1 ${count}`)
    // A list has pseudonyms only.
    assert.include(said, `bellcast permissions revoke news ${idOf("dora")}`)
    assert.include(said, "draft of-dora of the user")
    assert.isNotNull(await factOf("dora"))
    const revoke = ["permissions", "revoke", "news", idOf("dora"), "--nats", nats.url]
    assert.equal((await runCli(revoke, secretEnvironment)).code, 0)
    assert.include(await verb("erase", "--repeat", list), `0 ${count}`)
  })

  it("is not repeated by a list that names nobody, which a start complains about", async () => {
    const list = join(await temporaryFolder(), "erased.jsonl")
    writeFileSync(list, "\n")
    const args = ["user", "erase", "--repeat", list, "--nats", nats.url]
    const { code, stderr, stdout } = await runCli(args, secretEnvironment)
    assert.deepEqual([code, stdout], [1, ""])
    assert.match(stderr, /erased\.jsonl names nobody: if somebody was erased, put an earlier copy/)
    await using restarted = await startService({
      natsUrl: nats.url,
      roles: "projection",
      env: { BELLCAST_ERASED_FILE: list }
    })
    const says = /erased\.jsonl names nobody.*the list of erased users was not compared/
    await until(
      async () => restarted.output(),
      (text) => says.test(text)
    )
  })
})
