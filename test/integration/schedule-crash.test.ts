// Starts of scheduled broadcasts in trouble: processes that are killed, several planners, machines
// with wrong clocks, and many starts at once.
import { jetstream } from "@nats-io/jetstream"
import { headers } from "@nats-io/transport-node"
import { assert, it } from "vitest"
import { broadcastPath } from "../support/broadcast-states.ts"
import { call, finishedAt, join, publishAt, until } from "../support/client.ts"
import { wrongClock } from "../support/clock.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"
import { earlyMillisMax, inMillis } from "../support/times.ts"

const hourMillis = 3_600_000

const schedule = (url: string, at: string, channel = "news") =>
  publishAt(url, `/channels/${channel}`, { data: { n: 1 }, at })

const stateOf = async (url: string, id: string): Promise<string> =>
  (await call(url, "GET", broadcastPath(id), "publisher")).body.data.state

/** When the facts of a type were stored, milliseconds since the epoch. */
const factsIn = async (natsUrl: string, type: string): Promise<ReadonlyArray<number>> => {
  await using admin = await connectAdmin(natsUrl)
  const filter_subjects = ["bellcast.evt.state.*"]
  const consumer = await jetstream(admin.nc).consumers.get("BELLCAST_LOG", { filter_subjects })
  const { num_pending } = await consumer.info()
  const times: Array<number> = []
  for await (const msg of await consumer.fetch({ max_messages: num_pending })) {
    if (msg.headers?.get("Bellcast-Type") === `broadcast.${type}/1`) times.push(msg.time.getTime())
    if (msg.info.pending === 0) break
  }
  return times
}

it("starts what everything was killed before, at its time or as soon as something runs", {
  timeout: 120_000
}, async () => {
  await using nats = await startNats()
  await using push = await startPushService()
  const agents = Array.from({ length: 20 }, () => push.subscribe())
  const first = await startService({ natsUrl: nats.url })
  const subscriptions = agents.map(({ subscription }) => subscription)
  await join([first.url], "news", subscriptions)
  const [soon, late] = [inMillis(3_000), inMillis(15_000)]
  const ids = [await schedule(first.url, soon), await schedule(first.url, late)]
  // The first process may have started the first one: the audience is the same.
  await first.kill()
  await until(
    async () => Date.now(),
    (now) => now > Date.parse(soon)
  )
  await using second = await startService({ natsUrl: nats.url })
  const done = await finishedAt(second.url, broadcastPath(ids[0]!))
  assert.deepInclude(done, { state: "finished", accepted: 20, delivered: 20 })
  // The second one may be due on a busy machine. `started_at` below shows that it was not early.
  const state = await stateOf(second.url, ids[1]!)
  if (Date.now() < Date.parse(late)) assert.equal(state, "scheduled")
  const last = await finishedAt(second.url, broadcastPath(ids[1]!))
  assert.deepInclude(last, { state: "finished", accepted: 20, delivered: 20 })
  assert.isAtLeast(last.started_at, Date.parse(late) - earlyMillisMax)
  assert.isTrue(agents.every(({ received }) => received.length === 2))
  assert.lengthOf(await factsIn(nats.url, "started"), 2)
})

it("starts once, with several planners, at the time of NATS on machines with wrong clocks", {
  timeout: 120_000
}, async () => {
  await using nats = await startNats()
  await using push = await startPushService()
  const start = (roles: string, env: Readonly<Record<string, string>> = {}) =>
    startService({ natsUrl: nats.url, roles, env })
  await using service = await start("gateway,projection,delivery,tally")
  await using _ahead = await start("fanout", wrongClock(hourMillis))
  await using _behind = await start("fanout", wrongClock(-hourMillis))
  await using _right = await start("fanout")
  const agent = push.subscribe()
  await join([service.url], "news", [agent.subscription])
  const at = inMillis(6_000)
  const ids = await Promise.all(Array.from({ length: 20 }, () => schedule(service.url, at)))
  const faraway = await schedule(service.url, inMillis(hourMillis / 2))
  for (const id of ids) {
    const done = await finishedAt(service.url, broadcastPath(id))
    assert.deepInclude(done, { accepted: 1, delivered: 1 })
    assert.isAtLeast(done.started_at, Date.parse(at) - earlyMillisMax)
    assert.isAtMost(done.started_at, Date.parse(at) + hourMillis / 4)
  }
  assert.equal(await stateOf(service.url, faraway), "scheduled")
  assert.lengthOf(await factsIn(nats.url, "started"), ids.length)
  assert.lengthOf(agent.received, ids.length)
})

it("starts a thousand broadcasts of the same second", { timeout: 180_000 }, async () => {
  const size = 1_000
  await using nats = await startNats({ syncAlways: false })
  await using push = await startPushService()
  await using service = await startService({ natsUrl: nats.url })
  const agent = push.subscribe()
  await join([service.url], "news", [agent.subscription])
  await using admin = await connectAdmin(nats.url)
  const js = jetstream(admin.nc)
  const at = inMillis(12_000)
  const given = headers()
  given.set("Bellcast-Start-At", at)
  const subject = "bellcast.cmd.broadcast.billing.news"
  await Promise.all(
    Array.from({ length: size }, () =>
      js.publish(subject, "{}", { headers: given, timeout: 30_000 })
    )
  )
  const received = async () => agent.received.length
  await until(received, (count) => count >= size, 120_000)
  const starts = await factsIn(nats.url, "started")
  assert.lengthOf(starts, size)
  assert.isAtLeast(Math.min(...starts), Date.parse(at) - earlyMillisMax)
  console.log(`${size} starts: the last one ${Math.max(...starts) - Date.parse(at)} ms late`)
  const { subjects: found = {} } = (
    await admin.jsm.streams.info("BELLCAST_LOG", { subjects_filter: "bellcast.evt.state.*" })
  ).state
  assert.deepEqual([...new Set(Object.values(found))], [2])
})
