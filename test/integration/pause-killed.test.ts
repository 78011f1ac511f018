// Pauses, kills and resumes in turn, in an order that a seed decides.
import { assert, it } from "vitest"
import { broadcastPath, fewPermits, patchState, permits } from "../support/broadcast-states.ts"
import { finishedAt, publish } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { startNats } from "../support/nats.ts"
import { elapsed } from "../support/quiet.ts"
import { startService } from "../support/service.ts"
import { spawnPushService } from "../support/spawn-push-service.ts"
import { seeded } from "../torture/random.ts"

/** For a long run 200: after a kill the next process waits until it may claim each shard. */
const cycles = Number(process.env["BELLCAST_TEST_PAUSE_CYCLES"] ?? 3)
const seed = Number(process.env["BELLCAST_TEST_PAUSE_SEED"] ?? 1)
/** Of more than 1,000 people a broadcast has several shards. */
const size = 1_100

it(`misses nobody in ${cycles} cycles of pause, kill and resume`, {
  timeout: 120_000 + cycles * 40_000
}, async () => {
  const random = seeded(String(seed))
  await using nats = await startNats()
  await using push = await spawnPushService()
  const start = () => startService({ natsUrl: nats.url, env: fewPermits })
  let service = await start()
  let kills = 0
  const killed = async (chance: number) => {
    if (!random.chance(chance)) return
    kills += 1
    await service.kill()
    service = await start()
  }
  try {
    // Some fail first, so that retries wait while the service is killed.
    const most = await push.subscribe(size * 0.9, { script: ["slow 300"] })
    const some = await push.subscribe(size * 0.1, { script: ["503", "slow 300"] })
    await fillChannels(nats.url, [{ name: "news", subscriptions: [...most, ...some] }])
    const ids = [await publish(service.url, "news", { n: 0 })]
    /** Whether the state changed; else the broadcast is finished. */
    const change = async (state: string) => {
      const { body, status } = await patchState(service.url, ids.at(-1)!, state)
      if (status !== 200) assert.deepEqual(body.details, { state: "finished" })
      return status === 200
    }
    for (let cycle = 0; cycle < cycles; cycle++) {
      await elapsed(random.between(0, 800))
      if (!(await change("paused"))) {
        ids.push(await publish(service.url, "news", { n: ids.length }))
        continue
      }
      await elapsed(random.between(0, 400))
      await killed(0.8)
      await change("running")
      await elapsed(random.between(0, 400))
      await killed(0.4)
    }
    for (const id of ids) {
      const done = await finishedAt(service.url, broadcastPath(id), "publisher", 90_000)
      assert.deepInclude(done, { state: "finished", accepted: size, delivered: size })
    }
    const { faults, reached, texts } = await push.report()
    assert.deepEqual(new Set(Object.values(reached)), new Set([size]))
    const twice = Object.values(texts).map((count) => count - size)
    process.stdout.write(`${kills} kills, ${twice.join(" ")} of ${size} sent twice\n`)
    assert.lengthOf(twice, ids.length)
    assert.isAtMost(
      twice.reduce((sum, count) => sum + count, 0),
      kills * permits
    )
    assert.deepEqual(faults, [])
  } finally {
    await service.kill()
  }
})
