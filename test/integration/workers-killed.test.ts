// Workers that are killed: during a broadcast one of three gets a SIGKILL each time that
// hundreds more of the pushes arrived, and another one starts.
import { Effect } from "effect"
import { assert, it } from "vitest"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters, parseOfBroadcast } from "#streams/subjects.ts"
import { finished, publish } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { startNats } from "../support/nats.ts"
import { startService } from "../support/service.ts"
import { spawnPushService } from "../support/spawn-push-service.ts"

/** 20000 take two minutes. */
const size = Number(process.env["BELLCAST_TEST_KILLED_SUBSCRIPTIONS"] ?? 2_000)
/** Delivered pushes before the first kill, and between two. */
const [firstKill, killEach] = [200, Math.max(600, size / 20)]
const killsMax = Math.floor(size / killEach)
/** Settings.unrecordedPushesMax of the workers: the most that one crash may send twice. */
const duplicatesMax = 256

/** What WORK says of each push: its first try, and how often it came to an end. */
const readOutcomes = (natsUrl: string, broadcast: number) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const pushes = new Map<string, { firsts: number; ends: number }>()
    yield* log.replay("work", [filters.outcomesOf(broadcast)], ({ message, subject }) =>
      Effect.sync(() => {
        if (message.type !== "outcome") return
        for (const { fate, subscription, user } of message.results) {
          const push = pushes.get(`${user}.${subscription}`) ?? { firsts: 0, ends: 0 }
          if (parseOfBroadcast(subject)?.of === "shard") push.firsts += 1
          if (fate !== "retrying") push.ends += 1
          pushes.set(`${user}.${subscription}`, push)
        }
      })
    )
    return [...pushes.values()]
  }).pipe(Effect.provide(natsLayer({ url: natsUrl, name: "test" })), Effect.runPromise)

it(`delivers to all ${size} and records each push once while workers are killed`, {
  timeout: 120_000 + size * 30
}, async () => {
  await using nats = await startNats()
  await using push = await spawnPushService()
  // Slow, so that each worker has all its pushes under way when it is killed.
  const taken = await push.subscribe(size * 0.97, { script: ["slow 1500"] })
  const retried = await push.subscribe(size * 0.02, { script: ["503", "slow 1500"] })
  const gone = await push.subscribe(size * 0.01, { script: ["410"] })
  await using rest = await startService({
    natsUrl: nats.url,
    roles: "gateway,projection,fanout,tally"
  })
  // More connections than permits, so that only these keep the promise.
  const env = {
    BELLCAST_PUSHES_UNDER_WAY_MAX: "1024",
    BELLCAST_UNRECORDED_PUSHES_MAX: String(duplicatesMax),
    BELLCAST_SHARDS_IN_FLIGHT: "4"
  }
  const start = () => startService({ natsUrl: nats.url, roles: "delivery", env })
  const workers = [start(), start(), start()]
  let over = false
  try {
    // Mixed, so that every shard has some of each.
    const browsers = [...taken, ...retried, ...gone].sort((a, b) =>
      a.keys.auth < b.keys.auth ? -1 : 1
    )
    await fillChannels(nats.url, [{ name: "news", subscriptions: browsers }])
    await Promise.all(workers)
    const publishedAt = performance.now()
    const broadcast = await publish(rest.url, "news", { n: 1 })
    let kills = 0
    const killing = async () => {
      while (kills < killsMax) {
        await push.waitForDistinct(firstKill + kills * killEach, 120_000)
        if (over) return
        const place = kills % workers.length
        const worker = await workers[place]!
        kills += 1
        workers[place] = worker.kill().then(start)
      }
    }
    const killed = killing()
    // Awaited below, unless the broadcast fails first.
    killed.catch(() => {})
    const done = await finished(rest.url, "news", broadcast, 60_000 + size * 5)
    const seconds = (performance.now() - publishedAt) / 1000
    over = true
    await killed
    const { counts, faults } = await push.report()
    process.stdout.write(
      `${kills} kills in ${seconds.toFixed(1)} s, ${counts.duplicates} of ${size} sent twice\n`
    )
    const delivered = taken.length + retried.length
    assert.deepInclude(done, {
      accepted: size,
      delivered,
      gone: gone.length,
      dead: 0,
      expired: 0,
      retrying: 0,
      waiting: 0
    })
    assert.equal(counts.distinct, delivered)
    assert.deepEqual(faults, [])
    assert.isAtLeast(kills, killsMax, "the broadcast was over too soon to prove anything")
    assert.isAbove(counts.duplicates, 0, "no kill hit a worker at work")
    assert.isAtMost(counts.duplicates, kills * duplicatesMax)
    const outcomes = await readOutcomes(nats.url, Number(broadcast))
    assert.lengthOf(outcomes, size)
    assert.deepEqual([...new Set(outcomes.map(({ ends, firsts }) => `${firsts} ${ends}`))], ["1 1"])
  } finally {
    over = true
    for (const worker of workers) await worker.then((one) => one.kill())
  }
})
