// The ids by which NATS knows a repeated message: nobody but the service can tell the next one.
import { hash } from "node:crypto"
import { headers } from "@nats-io/transport-node"
import { Effect } from "effect"
import { assert, it } from "vitest"
import { provision } from "#nats/admin/provision.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { call, finished, join, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startNatsCluster } from "../support/nats-cluster.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"
import { useService } from "../support/use-service.ts"
import { idOf, tokenOf } from "../support/users.ts"

const shared = useService()

/** Publishes as a NATS client does, with each of these ids. */
const take = async (ids: ReadonlyArray<string>) => {
  await using admin = await connectAdmin(shared.nats.url)
  for (const id of ids) {
    const given = headers()
    given.set("Nats-Msg-Id", id)
    const subject = "bellcast.cmd.broadcast.billing.taken"
    const answer = await admin.nc.request(subject, "{}", { headers: given, timeout: 10_000 })
    assert.notInclude(answer.string(), "error")
  }
}

it("a key means the broadcast of its caller, whatever ids a NATS client took before", async () => {
  const { nats, service } = shared
  const name = JSON.stringify([idOf("publisher"), "news", "invoice-7"])
  const other = JSON.stringify([idOf("publisher"), "invoice-7"])
  const names = [name, other, JSON.stringify([other, 0])]
  await take([...names, ...names.map((each) => hash("sha256", each, "base64url"))])
  const key = { "Idempotency-Key": "invoice-7" }
  const ids = [
    await publish(service.url, "news", { n: 1 }, key),
    await publish(service.url, "news", { n: 1 }, key)
  ]
  assert.equal(ids[0], ids[1])
  // Another gateway makes the same id, and so does a later start.
  await using second = await startService({ natsUrl: nats.url, roles: "gateway" })
  assert.equal(await publish(second.url, "news", { n: 1 }, key), ids[0])
  const { body } = await call(second.url, "GET", `/broadcasts/${ids[0]}`, "publisher")
  assert.equal(body.data.publisher, idOf("publisher"))
})

it("what a push led to is stored, whatever ids a NATS client took before", async () => {
  const { nats, service } = shared
  await using push = await startPushService()
  const agent = push.subscribe({ script: ["410"] })
  await join([service.url], "gone", [agent.subscription])
  const { body } = await call(service.url, "GET", "/subscriptions", "user0")
  await using admin = await connectAdmin(nats.url)
  const subject = subjects.subscription(tokenOf("user0"))
  const put = await admin.jsm.streams.getMessage("BELLCAST_LOG", { last_by_subj: subject })
  await take([`gone.${tokenOf("user0")}.${body.data[0].id}.${put!.seq}`])
  const broadcast = await publish(service.url, "gone", { n: 1 })
  assert.deepInclude(await finished(service.url, "gone", broadcast), { accepted: 1, gone: 1 })
  await until(
    () => call(service.url, "GET", "/subscriptions", "user0"),
    (answer) => answer.body.data.length === 0
  )
  const last = await admin.jsm.streams.getMessage("BELLCAST_LOG", { last_by_subj: subject })
  assert.equal(last!.header.get("Bellcast-Type"), "subscription.gone/1")
  assert.match(last!.header.get("Nats-Msg-Id"), /^[\w-]{43}$/)
})

const news = subjects.broadcast("test", channelToken("news"))
const ids = ["first", "second"] as const
const message = { subject: news, type: "broadcast", body: {} } as const

/** Asks for names before and after one is stored, also on a stream without any room. */
const findNamed = (url: string, replicas: number) =>
  Effect.gen(function* () {
    yield* provision(replicas)
    const log = yield* EventLog
    const named = Effect.fnUntraced(function* () {
      const other = subjects.broadcast("other", channelToken("sport"))
      return [
        yield* log.named("log", { subject: news, messageId: ids[0] }),
        yield* log.named("log", { subject: other, messageId: ids[0] }),
        yield* log.named("log", { subject: news, messageId: ids[1] })
      ]
    })
    assert.deepEqual(yield* named(), [undefined, undefined, undefined])
    const { duplicate, seq } = yield* log.append("log", { ...message, messageId: ids[0] })
    // What was asked for was not stored, nor is its name taken.
    assert.deepEqual([duplicate, seq], [false, 1])
    assert.deepEqual(yield* named(), [1, 1, undefined])
    yield* Effect.promise(async () => {
      await using admin = await connectAdmin(url)
      const { state } = await admin.jsm.streams.info("BELLCAST_LOG")
      assert.equal(state.messages, 1)
      await admin.jsm.streams.update("BELLCAST_LOG", { max_bytes: state.bytes })
    })
    assert.deepEqual(yield* named(), [1, 1, undefined])
  }).pipe(Effect.provide(natsLayer({ url, name: "test", waitMillis: 60_000 })), Effect.runPromise)

it("NATS finds a message by its name, and stores nothing for that", async () => {
  await using nats = await startNats({ syncAlways: false })
  await findNamed(nats.url, 1)
})

it("NATS finds a message by its name in a replicated stream", { timeout: 120_000 }, async () => {
  await using cluster = await startNatsCluster("30GB")
  await findNamed(cluster.urls.join(","), 3)
})
