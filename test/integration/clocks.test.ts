// Workers whose machines have wrong clocks: every wait is as long as it was meant to be, and a push
// lives as long as its publisher said.
import { assert, it } from "vitest"
import { subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { call, finished, join, publish, until } from "../support/client.ts"
import { wrongClock } from "../support/clock.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { reply } from "../support/push-script.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"
import { spawnCli } from "../support/spawn-cli.ts"

const hourMillis = 3_600_000
const dayMillis = 24 * hourMillis
const pauseSeconds = 3
const ttlSeconds = 600
const size = 40

it("keeps its waits, in a worker an hour ahead and in one that is set back an hour", {
  timeout: 120_000
}, async () => {
  await using nats = await startNats()
  await using push = await startPushService()
  const start = (roles: string, env: Readonly<Record<string, string>> = {}) =>
    startService({ natsUrl: nats.url, roles, env })
  const pacing = { BELLCAST_PUSHES_UNDER_WAY_MAX: "4" }
  await using rest = await start("gateway,projection,fanout,tally")
  await using ahead = await start("delivery", { ...pacing, ...wrongClock(hourMillis) })
  await using back = await start("delivery", { ...pacing, ...wrongClock(0, -hourMillis) })
  let throttling = true
  const agents = Array.from({ length: size }, () => push.subscribe())
  const refusal = reply(429, () => ({ "retry-after": `${pauseSeconds}` }))
  for (const agent of agents) agent.answerBy((next) => (throttling ? refusal : next()))
  await join(
    [rest.url],
    "news",
    agents.map(({ subscription }) => subscription)
  )
  await using admin = await connectAdmin(nats.url)
  const pauses: Array<number> = []
  const note = (gossip: { closedMillis?: number }) => void pauses.push(gossip.closedMillis ?? 0)
  admin.nc.subscribe(subjects.pushService, { callback: (_, msg) => note(msg.json()) })
  const broadcast = await publish(rest.url, "news", { n: 1 }, { ttl: String(ttlSeconds) })
  const logs = () => Promise.resolve([ahead.output(), back.output()])
  await until(logs, (each) => each.every((log) => /throttles (us|another worker)/.test(log)))
  // Workers publish what is left of the pause every 2 s: the clock is set in the middle of it.
  back.process.kill("SIGUSR2")
  throttling = false
  const counts = await finished(rest.url, "news", broadcast, 30_000)
  assert.deepInclude(counts, { accepted: size, delivered: size, expired: 0 })
  assert.isAbove(Math.max(...pauses), 0)
  assert.isAtMost(Math.max(...pauses), pauseSeconds * 1_000)
  const ttls = agents.map(({ received }) => Number(received[0]?.headers["ttl"]))
  assert.isAbove(Math.min(...ttls), ttlSeconds / 2)
  assert.isAtMost(Math.max(...ttls), ttlSeconds)
  assert.deepEqual(push.faults, [])
  assert.match(ahead.output(), /"aheadSeconds":3600,.*clock of this machine/)
  const { body } = await call(ahead.metricsUrl(), "GET", "/metrics")
  const shown = Number(/^bellcast_clock_ahead_seconds (\S+)$/m.exec(body)?.[1])
  assert.approximately(shown, hourMillis / 1000, 10)
  await until(logs, ([, log]) => /"aheadSeconds":-3600,.*clock of this machine/.test(log!))
})

it("stores the time of NATS by a verb on a machine with a wrong clock", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats()
  await using _service = await startService({ natsUrl: nats.url, roles: "projection" })
  await using admin = await connectAdmin(nats.url)
  for (const aheadMillis of [dayMillis, -dayMillis]) {
    const args = ["permissions", "grant", `news${aheadMillis}`, "nats:desk", "--nats", nats.url]
    await using cli = await spawnCli(args, wrongClock(aheadMillis))
    assert.equal(await cli.exit(), 0, cli.output.stderr)
    const subject = subjects.publisher(channelToken(`news${aheadMillis}`))
    const found = await admin.jsm.streams.getMessage("BELLCAST_LOG", { last_by_subj: subject })
    assert.approximately(found!.json<{ at: number }>().at, found!.time.getTime(), 5_000)
  }
})
