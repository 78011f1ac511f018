// SIGTERM: the service completes its pushes and exits with code 0.
import { afterAll, assert, beforeAll, it } from "vitest"
import { fewPermits } from "../support/broadcast-states.ts"
import { call, finished, publish, until } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { type Service, startService } from "../support/service.ts"
import { spawnPushService } from "../support/spawn-push-service.ts"
import { idOf, tokenOf } from "../support/users.ts"

let nats: TestNats
let idle: Service | undefined
/** A service that the last case stops. */
const startIdle = async () => {
  idle ??= await startService({ natsUrl: nats.url })
  return idle
}

beforeAll(async () => {
  nats = await startNats()
})
afterAll(async () => {
  for (const each of [idle, nats]) await each?.[Symbol.asyncDispose]()
})

it("tells load balancers on SIGTERM, and serves new connections until its port closes", {
  timeout: 60_000
}, async () => {
  const env = { BELLCAST_SHUTDOWN_WAIT_SECONDS: "4" }
  await using service = await startService({ natsUrl: nats.url, env })
  const ask = (method: string, path: string) =>
    call(service.url, method, path, "user", method === "GET" ? undefined : {}, {
      connection: "close"
    })
  assert.equal((await ask("GET", "/__lbheartbeat__")).status, 200)
  const began = performance.now()
  const stopped = service.stop()
  const leaving = await until(
    () => ask("GET", "/__lbheartbeat__"),
    ({ status }) => status === 503,
    2_000
  )
  assert.deepEqual([leaving.body, leaving.headers.get("retry-after")], [{}, "3"])
  const metrics = await call(service.metricsUrl(), "GET", "/__lbheartbeat__")
  assert.deepEqual([metrics.status, metrics.body], [503, {}])
  assert.equal((await ask("PUT", "/channels/leaving/registration")).status, 202)
  assert.equal((await ask("POST", "/channels/leaving")).status, 202)
  assert.equal(await stopped, 0)
  assert.isAtLeast(performance.now() - began, 4_000)
})

it("closes its port on SIGTERM while it finishes a request on NATS", {
  timeout: 60_000
}, async () => {
  await using admin = await connectAdmin(nats.url)
  const stage = await startService({ natsUrl: nats.url })
  await stage.stop()
  const env = {
    BELLCAST_CHANNEL_WRITE_PRINCIPALS: "news=nats:billing",
    BELLCAST_USER_WRITE_PRINCIPALS: "nats:billing"
  }
  await using service = await startService({ natsUrl: nats.url, roles: "gateway", env })
  // No projection runs, for which the request waits 5 s.
  const body = JSON.stringify({ channel: "news", user: idOf("ann") })
  let isAnswered = false
  const request = admin.nc.request("bellcast.api.billing.member-put", body, { timeout: 15_000 })
  void request.finally(() => {
    isAnswered = true
  })
  const last_by_subj = `bellcast.cmd.registration.news.${tokenOf("ann")}`
  await until(
    () => admin.jsm.streams.getMessage("BELLCAST_LOG", { last_by_subj }).catch(() => null),
    (stored) => stored !== null
  )
  const stopped = service.stop()
  await until(
    () => call(service.url, "GET", "/__lbheartbeat__").catch(() => undefined),
    (answer) => answer === undefined
  )
  assert.isFalse(isAnswered)
  assert.equal((await request).headers?.get("Nats-Service-Error-Code"), "503")
  assert.equal(await stopped, 0)
})

it("finishes what is in hand on SIGTERM, exits 0, and sends nothing twice", {
  timeout: 120_000
}, async () => {
  await using push = await spawnPushService({ decrypt: false })
  // Few at a time and slow, so that most wait when the signal comes.
  const subscriptions = await push.subscribe(500, { script: ["slow 500"] })
  const first = await startService({ natsUrl: nats.url, env: fewPermits })
  await fillChannels(nats.url, [{ name: "news", subscriptions }])
  const broadcast = await publish(first.url, "news", { n: 1 })
  await push.waitForDistinct(100, 30_000)
  assert.equal(await first.stop(), 0, first.output())
  assert.isBelow(
    (await push.report()).counts.distinct,
    500,
    "the signal came too late to prove anything"
  )
  const second = await startIdle()
  assert.deepInclude(await finished(second.url, "news", broadcast, 90_000), {
    accepted: 500,
    delivered: 500
  })
  const { counts } = await push.report()
  assert.deepInclude(counts, { distinct: 500, duplicates: 0 })
})

// The last: it kills NATS.
it("told to stop while NATS is away and nothing is in hand, ends soon and in order", {
  timeout: 60_000
}, async () => {
  const service = await startIdle()
  await nats.kill()
  await until(
    async () => service.output(),
    (output) => output.includes("the connection to NATS is lost")
  )
  assert.equal(await service.stop(), 0)
})
