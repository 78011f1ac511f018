// The heartbeat is false when something is due and nothing ends, whatever the cause, and names it;
// it stays true for what is meant to wait.
import { jetstream, jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { assert, describe, it } from "vitest"
import { call, join, joinAll, publish, until } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startConfiguredNats } from "../support/nats-configured.ts"
import { startNatsProxy } from "../support/nats-proxy.ts"
import { claimPort } from "../support/ports.ts"
import { startPushService } from "../support/push-service.ts"
import { unchanged } from "../support/quiet.ts"
import { type Service, startService } from "../support/service.ts"

const workers = "gateway,fanout,delivery,tally"

const heartbeatOf = async ({ metricsUrl }: Service) => {
  const response = await fetch(`${metricsUrl()}/__heartbeat__`)
  return { status: response.status, body: (await response.json()) as Record<string, boolean> }
}

/** Resolves with the seconds until the check fails. The log has the words then. */
const failsWith = async (service: Service, check: string, words: RegExp, seconds: number) => {
  const begin = performance.now()
  await until(
    async () => {
      const { body, status } = await heartbeatOf(service)
      return status === 503 && body[check] === false && words.test(service.output())
    },
    (isFailed) => isFailed,
    seconds * 1_000
  )
  const took = Math.round((performance.now() - begin) / 1_000)
  console.info(`${words.source}: ${took} s`)
  return took
}

/** A NATS whose login may not do some things, from `deny` on. */
const startDenying = async () => {
  const port = await claimPort()
  const config = (denied: ReadonlyArray<string>) => `jetstream: enabled
    authorization { users: [
      { user: admin, password: p }
      { user: u, password: p, permissions: {
        publish: { allow: ">", deny: [${denied.map((each) => `"${each}"`).join(", ")}] }
        subscribe: ">" } }
    ] }`
  const nats = await startConfiguredNats(port, config(["nothing"]))
  return {
    url: `nats://u:p@127.0.0.1:${port}`,
    deleteConsumer: async (stream: string, name: string) => {
      const nc = await connect({ servers: `127.0.0.1:${port}`, user: "admin", pass: "p" })
      await (await jetstreamManager(nc)).consumers.delete(stream, name)
      await nc.close()
    },
    deny: (...denied: ReadonlyArray<string>) => nats.reload(config(denied)),
    [Symbol.asyncDispose]: () => nats[Symbol.asyncDispose]()
  }
}

describe.concurrent("the heartbeat is false", { timeout: 300_000 }, () => {
  it("where a consumer is gone and cannot be made again", async () => {
    await using nats = await startDenying()
    await using service = await startService({ natsUrl: nats.url })
    await nats.deny("$JS.API.CONSUMER.CREATE.>", "$JS.API.CONSUMER.DURABLE.CREATE.>")
    await nats.deleteConsumer("BELLCAST_WORK", "deliver")
    await failsWith(service, "delivery", /deliver is missing/, 30)
  })

  it("where a consumer is paused, and no projector resumes it", async () => {
    await using nats = await startNats({ syncAlways: false })
    await using projector = await startService({ natsUrl: nats.url, roles: "projection" })
    await using service = await startService({ natsUrl: nats.url, roles: workers })
    await projector.kill()
    await using admin = await connectAdmin(nats.url)
    const end = new Date(Date.now() + 3_600_000)
    await admin.jsm.consumers.pause("BELLCAST_LOG", "planner", end)
    await failsWith(service, "delivery", /planner is paused/, 30)
  })

  it("where NATS gives out no more, because others hold the messages", async () => {
    const port = await claimPort()
    const limits = "jetstream { limits { max_ack_pending: 1 } }"
    await using _nats = await startConfiguredNats(port, limits)
    const natsUrl = `nats://127.0.0.1:${port}`
    const gateway = await startService({ natsUrl, roles: "gateway,projection" })
    await publish(gateway.url, "news", { n: 1 })
    await gateway.stop()
    // Somebody takes the only message that may be out, and says for ever that work goes on.
    const nc = await connect({ servers: natsUrl })
    const consumer = await jetstream(nc).consumers.get("BELLCAST_LOG", "planner")
    const taken = (await consumer.next())!
    const goesOn = setInterval(() => taken.working(), 2_000)
    await using service = await startService({ natsUrl })
    await publish(service.url, "news", { n: 2 })
    await failsWith(service, "delivery", /1 messages are not acknowledged, and NATS gives/, 170)
    clearInterval(goesOn)
    taken.ack()
    await until(
      () => heartbeatOf(service),
      ({ status }) => status === 200,
      60_000
    )
    await nc.close()
  })

  it("where the login may not pull messages any more", async () => {
    await using nats = await startDenying()
    await using service = await startService({ natsUrl: nats.url })
    await nats.deny("$JS.API.CONSUMER.MSG.NEXT.BELLCAST_LOG.planner")
    await publish(service.url, "news", { n: 1 })
    await failsWith(service, "delivery", /planner: NATS has refused messages to a process/, 90)
  })

  it("where each message fails again and again", async () => {
    await using nats = await startNats({ syncAlways: false })
    await using service = await startService({ natsUrl: nats.url })
    await using admin = await connectAdmin(nats.url)
    // Too small for a plan.
    await admin.jsm.streams.update("BELLCAST_WORK", { max_msg_size: 20 })
    await publish(service.url, "news", { n: 1 })
    const words = /planner: 1 wait and none ended .*taken and none ends: their handler fails/
    await failsWith(service, "delivery", words, 170)
    await admin.jsm.streams.update("BELLCAST_WORK", { max_msg_size: 65_536 })
    await until(
      () => heartbeatOf(service),
      ({ status }) => status === 200,
      60_000
    )
  })

  it("where no projector runs, and names the role where broadcasts wait", async () => {
    await using nats = await startNats({ syncAlways: false })
    const projector = await startService({ natsUrl: nats.url, roles: "projection" })
    await using service = await startService({ natsUrl: nats.url, roles: workers })
    await projector.kill()
    await until(
      () => heartbeatOf(service),
      ({ body }) => body["storage"] === false,
      30_000
    )
    await publish(service.url, "news", { n: 1 })
    await until(
      async () => service.output(),
      (log) =>
        /"reason":"[^"]*no process runs the role projection[^"]*".*broadcasts wait to be/.test(log),
      60_000
    )
    await failsWith(service, "delivery", /projector: \d+ wait .*no process runs the role proj/, 170)
  })

  it("where NATS is slower than the time in which messages must be acknowledged", async () => {
    await using nats = await startNats({ syncAlways: false })
    await using proxy = await startNatsProxy(nats.url)
    await using service = await startService({ natsUrl: proxy.url })
    await publish(service.url, "news", { n: 1 })
    proxy.delay(20_000)
    await failsWith(service, "delivery", /heartbeat: delivery fails/, 60)
  })
})

describe.concurrent("the heartbeat is true", { timeout: 300_000 }, () => {
  it("while 10,000 are paused, and others wait by a rate or by Retry-After", async () => {
    await using nats = await startNats({ syncAlways: false })
    await using push = await startPushService()
    await using service = await startService({ natsUrl: nats.url })
    const many = Array.from({ length: 10_000 }, () => push.subscribe().subscription)
    await fillChannels(nats.url, [{ name: "paused", subscriptions: many }])
    const paused = await publish(service.url, "paused", { n: 1 })
    const path = `/broadcasts/${paused}`
    await call(service.url, "PATCH", path, "publisher", { data: { state: "paused" } })
    const slow = Array.from({ length: 400 }, () => push.subscribe())
    await joinAll(service.url, "slow", slow)
    await call(service.url, "POST", "/channels/slow", "publisher", { data: { n: 1 }, rate: 1 })
    await using later = await startPushService()
    const agents = Array.from({ length: 20 }, () =>
      later.subscribe({ script: ["429 retry-after 600"] })
    )
    await join(
      [service.url],
      "later",
      agents.map(({ subscription }) => subscription)
    )
    await publish(service.url, "later", { n: 1 })
    await until(
      async () => agents.filter(({ attempts }) => attempts.length > 0).length,
      (count) => count === agents.length,
      60_000
    )
    // Longer than messages may be due.
    const read = async () => (await heartbeatOf(service)).status
    assert.equal(await unchanged(read, 150_000), 200)
  })
})
