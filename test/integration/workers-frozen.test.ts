// A worker that is frozen for longer than its ack wait: another one gets its shards meanwhile. Once
// it goes on, it must not send from shards that it has lost.
import { assert, it } from "vitest"
import { finished, join, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { settled } from "../support/quiet.ts"
import { startService } from "../support/service.ts"
import { spawnPushService } from "../support/spawn-push-service.ts"

/** Small shards, so that the worker has a dozen of them in hand. */
const browsers = 10
const broadcasts = 24
/** Settings.unrecordedPushesMax: the most that may be sent twice. */
const permits = 64
const env = { BELLCAST_UNRECORDED_PUSHES_MAX: String(permits) }

it("sends nothing more from the shards that another worker has taken over", {
  timeout: 120_000
}, async () => {
  await using nats = await startNats()
  await using push = await spawnPushService()
  await using rest = await startService({
    natsUrl: nats.url,
    roles: "gateway,projection,fanout,tally"
  })
  const start = () => startService({ natsUrl: nats.url, roles: "delivery", env })
  await using frozen = await start()
  await join([rest.url], "news", await push.subscribe(browsers, { script: ["slow 1000"] }))
  const ids = await Promise.all(
    Array.from({ length: broadcasts }, (_, n) => publish(rest.url, "news", { n }))
  )
  const total = async () => (await push.report()).counts.total
  await until(total, (sent) => sent > permits)
  frozen.process.kill("SIGSTOP")
  await using _other = await start()
  for (const id of ids)
    assert.deepInclude(await finished(rest.url, "news", id, 60_000), { delivered: browsers })
  const before = await total()
  frozen.process.kill("SIGCONT")
  const sent = await settled(total, 1_500)
  const { faults, texts } = await push.report()
  const all = browsers * broadcasts
  process.stdout.write(`${before - all} twice, and ${sent - before} after it went on\n`)
  assert.deepEqual([...new Set(Object.values(texts).map((n) => n >= browsers))], [true])
  assert.lengthOf(Object.keys(texts), broadcasts)
  assert.isAtMost(sent - all, permits)
  assert.deepEqual(faults, [])
})
