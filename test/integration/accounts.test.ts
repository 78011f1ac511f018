// The accounts file for nats-server: everybody can do his work with it, and nothing else.

import { jetstreamManager } from "@nats-io/jetstream"
import { connect, type NatsConnection } from "@nats-io/transport-node"
import { afterAll, assert, beforeAll, it } from "vitest"
import { accounts, clientOf, passwords, storedIn } from "../support/accounts.ts"
import { call, finished, join, publish, until } from "../support/client.ts"
import { startConfiguredNats } from "../support/nats-configured.ts"
import { claimPort } from "../support/ports.ts"
import { startPushService } from "../support/push-service.ts"
import { settled } from "../support/quiet.ts"
import { runCli } from "../support/run-cli.ts"
import { type Service, secretEnvironment, startService } from "../support/service.ts"
import { idOf } from "../support/users.ts"

const subject = "bellcast.cmd.broadcast.billing.news"
const body = JSON.stringify({ data: { title: "Hello" } })
/** For requests. The default of a second is short for a busy machine. */
const patient = { timeout: 10_000 }

let port = 0
let server: AsyncDisposable
let push: Awaited<ReturnType<typeof startPushService>>
let service: Service
let broadcast = ""

const urlOf = (user: string) => `nats://${user}:word@127.0.0.1:${port}`
const env = {
  BELLCAST_NATS_INBOX_PREFIX: "_INBOX_bellcast",
  BELLCAST_USER_WRITE_PRINCIPALS: "nats:billing"
}

const stored = () => storedIn(port)

const refused = (request: Promise<unknown>, what: string) =>
  request.then(
    () => assert.fail(`${what} was answered`),
    (error: Error) =>
      assert.match(error.message, /no responders|permissions violation|timeout/i, what)
  )

beforeAll(async () => {
  port = await claimPort()
  server = await startConfiguredNats(port, `jetstream {}\n${accounts}`, passwords)
  push = await startPushService()
  service = await startService({ natsUrl: urlOf("bellcast"), env })
  await join([service.url], "news", [push.subscribe().subscription])
  broadcast = await publish(service.url, "news", { n: 1 })
  await finished(service.url, "news", broadcast)
})

afterAll(async () => {
  await service?.[Symbol.asyncDispose]()
  await push?.[Symbol.asyncDispose]()
  await server?.[Symbol.asyncDispose]()
})

/** The content once nothing changes any more: checkpoints and counts are saved once a second. */
const storedAtRest = () => settled(stored, 2_500)

const auditorFlags = () => [
  ...["--nats", urlOf("audit"), "--inbox-prefix", "_INBOX_audit", "--js-domain", "bellcast"]
]

it("lets an auditor read and nothing else", { timeout: 60_000 }, async () => {
  const audit = await runCli(["audit", broadcast, ...auditorFlags()])
  assert.deepEqual([audit.code, audit.stderr], [0, ""])
  assert.match(audit.stdout, /delivered/)
  const now = new Date().toISOString()
  const toUser = `audit --user ${/^[\w-]{22}/m.exec(audit.stdout)![0]}`
  for (const verb of [
    "verify",
    "streams --live",
    "dead",
    "permissions list",
    "channel list",
    toUser,
    `permissions list --at ${now}`,
    `channel show news --at ${now}`,
    `${toUser.replace("audit --user", "user show")} --at ${now}`,
    `${toUser} --at ${now}`
  ]) {
    const result = await runCli([...verb.split(" "), ...auditorFlags()])
    assert.deepEqual([result.code, result.stderr], [0, ""], verb)
  }
  // The id needs the user id secret.
  const ofUser = ["export", "-", "--user", idOf("user0"), "--all", ...auditorFlags()]
  const exported = await runCli(ofUser, secretEnvironment)
  assert.equal(exported.code, 0, exported.stderr)
  assert.include(exported.stdout, '"stream":"BELLCAST_WORK"')
  assert.include(exported.stdout, '"stream":"KV_bellcast_subscriptions"')
  // By the checkpoint, which is saved once a second.
  await until(
    async () => (await runCli(["streams", "--live", ...auditorFlags()])).stdout,
    (live) => /^projector .* 0 *$/m.test(live) && /^deliver .* 0 +0 *$/m.test(live)
  )

  await using client = await clientOf(port, "audit", "_INBOX_audit")
  const { nc } = client
  const jsm = await jetstreamManager(nc, { domain: "bellcast" })
  // The requests of `nats stream ls`, `nats stream info`, `nats stream get` and `nats consumer`.
  const names = (await jsm.streams.list().next()).map(({ config }) => config.name)
  assert.includeMembers(names, ["BELLCAST_LOG", "BELLCAST_WORK"])
  assert.equal((await jsm.streams.info("BELLCAST_LOG")).config.name, "BELLCAST_LOG")
  assert.isNotNull(await jsm.streams.getMessage("BELLCAST_LOG", { seq: Number(broadcast) }))
  assert.isNotEmpty(await jsm.consumers.list("BELLCAST_WORK").next())
  // Requests of `nats kv get`, and of `nats sub --direct`, which reads a whole stream.
  const direct = "$JS.bellcast.API.DIRECT.GET"
  const key = "bellcast_subscriptions.$KV.bellcast_subscriptions.meta"
  assert.equal((await nc.request(`${direct}.KV_${key}`)).json<{ v: number }>().v, 1)
  const read: Array<string> = []
  const options = { strategy: "sentinel", maxWait: 10_000 } as const
  const all = JSON.stringify({ seq: 1, batch: 100 })
  for await (const { headers } of await nc.requestMany(`${direct}.BELLCAST_LOG`, all, options))
    read.push(headers?.get("Nats-Subject") ?? "")
  const { state } = await jsm.streams.info("BELLCAST_LOG")
  // The last response ends the batch, and is the only empty one.
  assert.lengthOf(read, state.messages + 1)

  const before = await storedAtRest()
  const changes = [
    "STREAM.PURGE.BELLCAST_LOG",
    "STREAM.DELETE.BELLCAST_LOG",
    "STREAM.UPDATE.BELLCAST_LOG",
    "STREAM.CREATE.MINE",
    "STREAM.SNAPSHOT.BELLCAST_LOG",
    "STREAM.RESTORE.BELLCAST_LOG",
    "STREAM.LEADER.STEPDOWN.BELLCAST_LOG",
    "STREAM.MSG.DELETE.BELLCAST_LOG",
    "CONSUMER.PAUSE.BELLCAST_WORK.deliver",
    "CONSUMER.DELETE.BELLCAST_WORK.deliver",
    "CONSUMER.RESET.BELLCAST_WORK.deliver",
    "CONSUMER.MSG.NEXT.BELLCAST_WORK.deliver",
    "CONSUMER.CREATE.BELLCAST_LOG",
    "CONSUMER.CREATE.BELLCAST_WORK.deliver"
  ]
  for (const change of changes)
    for (const api of ["$JS.bellcast.API", "$JS.API"])
      await refused(nc.request(`${api}.${change}`, "{}", { timeout: 500 }), `${api}.${change}`)
  await refused(nc.request(subject, body, { timeout: 500 }), "a broadcast")
  // The server would store the message that is read once more, if the reply subject were
  // one of the service's.
  for (const reply of [subject, "$KV.bellcast_permissions.news.publishers"])
    nc.publish(
      "$JS.bellcast.API.DIRECT.GET.BELLCAST_LOG",
      JSON.stringify({ seq: Number(broadcast) }),
      { reply }
    )
  await nc.flush()
  await jsm.getAccountInfo()
  assert.deepEqual(await stored(), before)
  assert.isTrue(client.violations.some((each) => each.includes("Permissions Violation")))
})

it("holds a publisher to its source and to its own replies", { timeout: 60_000 }, async () => {
  await using client = await clientOf(port, "billing", "_INBOX_billing")
  const { nc, violations } = client
  const { id: user } = (await call(service.url, "GET", "/", "user0")).body.user as { id: string }
  const member = JSON.stringify({ channel: "guests", user })
  const added = (await nc.request("bellcast.api.billing.member-put", member, patient)).json()
  assert.deepEqual(added, { code: 202, message: "Accepted" })
  const { seq } = (await nc.request(subject, body, patient)).json<{ seq: number }>()
  const counts = await finished(service.url, "news", String(seq))
  assert.deepInclude(counts, { accepted: 1, delivered: 1 })

  const seen: Array<string> = []
  const listen = (to: string) =>
    nc.subscribe(to, {
      callback: (error, msg) => {
        if (error === null) seen.push(msg.subject)
      }
    })
  for (const other of ["_INBOX.>", "_INBOX_bellcast.>", "_INBOX_audit.>", "bellcast.>", ">"])
    listen(other)
  await nc.flush()
  await until(
    async () => violations.length,
    (count) => count >= 5
  )
  for (const each of violations) assert.match(each, /Permissions Violation for Subscription/)

  const before = await storedAtRest()
  const forged = [
    "bellcast.cmd.broadcast.rest.news",
    "bellcast.cmd.broadcast.billing.=direct",
    "bellcast.cmd.broadcast.billing.=channels",
    "bellcast.cmd.part.rest",
    "bellcast.cmd.part.billing",
    "bellcast.cmd.broadcast.billing.news.more",
    "bellcast.api.rest.member-put",
    "bellcast.api.other.member-put",
    "bellcast.api.billing.member-put.more",
    "$SRV.PING",
    "bellcast.cmd.publisher.news",
    "bellcast.cmd.subscription.somebody",
    "bellcast.evt.rejected.1",
    "bellcast.sys.applied",
    "$KV.bellcast_permissions.news.publishers",
    "$JS.API.STREAM.MSG.GET.BELLCAST_LOG",
    "$JS.API.STREAM.PURGE.BELLCAST_LOG",
    "$JS.API.STREAM.MSG.DELETE.BELLCAST_LOG",
    "$JS.API.INFO"
  ]
  for (const each of forged) await refused(nc.request(each, member, { timeout: 500 }), each)
  assert.deepEqual(await stored(), before)

  // Replies of the service to its own requests, with the user's subscriptions in them.
  await join([service.url], "other", [push.subscribe().subscription], 1, "other")
  // An acknowledgement goes to no subject of the service, whatever reply subject is asked for.
  const replies = ["$KV.bellcast_permissions.news.publishers", "bellcast.evt.rejected.1"]
  for (const reply of replies) {
    nc.publish(subject, body, { reply })
    nc.publish("bellcast.api.billing.members", JSON.stringify({ channel: "guests" }), { reply })
  }
  await nc.flush()
  const last = (await nc.request(subject, body, patient)).json<{ seq: number }>().seq
  await finished(service.url, "news", String(last))
  await nc.request("bellcast.api.billing.members", JSON.stringify({ channel: "guests" }), patient)
  const { BELLCAST_LOG: log, KV_bellcast_permissions: permissions } = await stored()
  assert.notInclude(JSON.stringify(log), "bellcast.evt.rejected.1")
  assert.deepEqual(permissions, before["KV_bellcast_permissions"])
  assert.deepEqual(seen, [])
})

it("shows the service to `nats micro list` of an operator", async () => {
  await using admin = await clientOf(port, "bellcast-admin", "_INBOX_bellcast")
  const { name } = (await admin.nc.request("$SRV.PING", "", patient)).json<{ name: string }>()
  assert.equal(name, "bellcast")
})

it("admits no stranger", async () => {
  const attempt = (options: object) =>
    connect({ servers: `127.0.0.1:${port}`, reconnect: false, ...options }).then(
      async (nc: NatsConnection) => {
        await nc.close()
        assert.fail("admitted")
      },
      (error: Error) => assert.match(error.message, /authorization violation/i)
    )
  await attempt({})
  await attempt({ user: "audit", pass: "guess" })
  await attempt({ user: "stranger", pass: "word" })
})

it("lets the service do all that it does, and an operator rebuild", {
  timeout: 60_000
}, async () => {
  const operator = ["--nats", urlOf("bellcast"), "--inbox-prefix", "_INBOX_bellcast"]
  const added = await runCli(["permissions", "grant", "news", "openid:editor", ...operator])
  assert.deepEqual([added.code, added.stderr], [0, ""])
  const redrive = await runCli(["redrive", broadcast, ...operator])
  assert.equal(redrive.code, 0, redrive.stderr)
  await using admin = await clientOf(port, "bellcast-admin", "_INBOX_bellcast")
  const { headers } = await call(service.url, "PUT", "/drafts/a", "editor", { data: {} })
  const ifMatch = { "if-match": headers.get("etag")! }
  const data = { data: { n: 1 } }
  const saved = await call(service.url, "PUT", "/drafts/a", "editor", { data }, ifMatch)
  assert.equal(saved.status, 200)
  const drafts = { subjects_filter: "bellcast.cmd.draft.>" }
  const jsm = await jetstreamManager(admin.nc)
  await until(
    async () => (await jsm.streams.info("BELLCAST_LOG", drafts)).state.subjects,
    (counts) => counts?.["bellcast.cmd.draft.a"] === 1
  )
  await service.stop()
  assert.notMatch(service.output(), /Permissions Violation|NATS refuses/)
  const rebuilt = await runCli(["rebuild", ...operator])
  assert.equal(rebuilt.code, 0, rebuilt.stderr)
  service = await startService({ natsUrl: urlOf("bellcast"), env })
  const again = await publish(service.url, "news", { n: 2 })
  const { accepted, delivered } = await finished(service.url, "news", again)
  assert.isAbove(Number(delivered), 0)
  assert.equal(delivered, accepted)
  await service.stop()
  assert.notMatch(service.output(), /Permissions Violation|NATS refuses/)
})
