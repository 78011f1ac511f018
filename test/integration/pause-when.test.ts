// Broadcasts that pause by themselves because many of their pushes fail.
import { randomUUID } from "node:crypto"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import {
  broadcastPath,
  changeState,
  fewPermits,
  patchState,
  untilShown
} from "../support/broadcast-states.ts"
import { finishedAt, publishAt, until } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { type Service, startService } from "../support/service.ts"
import { type SpawnedPushService, spawnPushService } from "../support/spawn-push-service.ts"
import { useService } from "../support/use-service.ts"

const size = 400
const body = { data: { n: 1 }, pause_when: { failed_share: 0.2 } }

/** Mixes two lists evenly, each in its order: the order in which pushes begin. */
const mixed = <A>(good: ReadonlyArray<A>, bad: ReadonlyArray<A>): ReadonlyArray<A> =>
  [good, bad]
    .flatMap((list) => list.map((each, i) => [i / list.length, each] as const))
    .sort(([a], [b]) => a - b)
    .map(([, each]) => each)

/** The facts in LOG that the broadcast was paused. */
const paused = async (natsUrl: string, id: string) => {
  await using admin = await connectAdmin(natsUrl)
  const found: Array<Record<string, unknown>> = []
  const { last_seq } = (await admin.jsm.streams.info("BELLCAST_LOG")).state
  for (let seq = Number(id); seq <= last_seq; seq++) {
    const message = await admin.jsm.streams.getMessage("BELLCAST_LOG", { seq })
    const isPaused = message?.header.get("Bellcast-Type") === "broadcast.paused/1"
    if (isPaused && message?.subject.endsWith(`.${id}`)) found.push(message.json())
  }
  return found
}

/** The lines of the log about pauses of a broadcast. */
const pauseLines = ({ output }: Service, id: string) =>
  output()
    .split("\n")
    .filter((line) => line.includes('"broadcast paused"') && line.includes(`"broadcast":${id},`))
    .map((line) => JSON.parse(line))

describe("a broadcast with pause_when", () => {
  const shared = useService({ env: fewPermits })
  let push: SpawnedPushService
  beforeAll(async () => {
    push = await spawnPushService({ decrypt: false })
  })
  afterAll(() => push?.[Symbol.asyncDispose]())

  it("pauses by itself, says why, and counts from a resume on", { timeout: 120_000 }, async () => {
    const { nats, service } = shared
    const { url } = service
    const good = await push.subscribe(size * 0.7, { script: ["slow 500"] })
    const bad = await push.subscribe(size * 0.3, { script: ["slow 500 400"] })
    // A second try has a channel of its own.
    const name = `news-${randomUUID()}`
    await fillChannels(nats.url, [{ name, subscriptions: mixed(good, bad) }])
    const id = await publishAt(url, `/channels/${name}`, body)
    let pauses = 0
    while (true) {
      const shown = await untilShown(url, id, ({ state }) => state !== "running")
      if (shown.state === "finished") break
      pauses += 1
      assert.deepInclude(shown, {
        ...{ state: "paused", changed_by: "pause_when", pause_when: { failed_share: 0.2 } }
      })
      const { attempted, failed } = shown.because
      assert.isAtLeast(attempted, 100)
      assert.isAtLeast(failed / attempted, 0.2)
      const { body: resumed, status } = await patchState(url, id, "running")
      // The last pushes may have ended meanwhile.
      if (status === 409 && resumed.details.state === "finished") break
      assert.equal(status, 200)
      assert.notProperty(resumed.data, "because")
    }
    const done = await finishedAt(url, broadcastPath(id))
    assert.deepInclude(done, { accepted: size, delivered: size * 0.7, dead: size * 0.3 })
    assert.isAtLeast(pauses, 2)
    const stored = await paused(nats.url, id)
    // When it paused while the last pushes were under way, it is finished without a resume.
    assert.include([pauses, pauses + 1], stored.length)
    assert.deepEqual(
      stored.map(({ by, run }) => [by, run]),
      Array.from(stored, (_, run) => ["pause_when", run])
    )
    const lines = await until(
      async () => pauseLines(service, id),
      (found) => found.length === stored.length
    )
    for (const [i, { level, publisher, channel, attempted, failed, accepted }] of lines.entries()) {
      assert.deepEqual([level, publisher, channel], [40, done.publisher, name])
      assert.deepEqual({ attempted, failed }, stored[i]!["because"])
      assert.isAtMost(accepted, size)
    }
    const before = stored.map(({ because }) => (because as { attempted: number }).attempted)
    const { delivered, dead } = done
    assert.isAtMost(
      before.reduce((sum, count) => sum + count, 0),
      delivered + dead
    )
  })

  it("goes on while pushes are gone or throttled, or few fail", { timeout: 120_000 }, async () => {
    const { nats, service } = shared
    const { url } = service
    const scripts = { gone: ["410"], throttled: ["429 retry-after 1", "201"], few: ["400"] }
    const failing = { gone: 0.3, throttled: 0.3, few: 0.1 }
    for (const name of ["gone", "throttled", "few"] as const) {
      const good = await push.subscribe(200 * (1 - failing[name]), {})
      const bad = await push.subscribe(200 * failing[name], { script: scripts[name] })
      await fillChannels(nats.url, [{ name, subscriptions: mixed(good, bad) }])
      const id = await publishAt(url, `/channels/${name}`, body)
      const done = await finishedAt(url, broadcastPath(id), "publisher", 60_000)
      assert.deepInclude(done, { accepted: 200, state: "finished" })
      assert.deepEqual(await paused(nats.url, id), [])
    }
  })

  it("pauses once, although a tally is frozen, another takes over, and both are killed", {
    timeout: 120_000
  }, async () => {
    await using nats = await startNats()
    await using push = await spawnPushService({ decrypt: false })
    const env = fewPermits
    const tally = () => startService({ natsUrl: nats.url, roles: "tally", env })
    await using first = await tally()
    await using rest = await startService({
      natsUrl: nats.url,
      roles: "gateway,projection,fanout,delivery",
      env
    })
    const browsers = await push.subscribe(size, { script: ["slow 400 503"] })
    await fillChannels(nats.url, [{ name: "news", subscriptions: browsers }])
    first.process.kill("SIGSTOP")
    const id = await publishAt(rest.url, "/channels/news", body)
    await until(
      async () => (await push.report()).counts.requests,
      (requests) => requests > 150
    )
    await using second = await tally()
    await untilShown(rest.url, id, ({ state }) => state === "paused")
    first.process.kill("SIGCONT")
    await second.kill()
    // The first one, or the third, counts again what the second one counted.
    await untilShown(
      rest.url,
      id,
      ({ accepted, because, waiting }) => accepted > 0 && waiting <= accepted - because.attempted
    )
    await first.kill()
    await using _third = await tally()
    await changeState(rest.url, id, "cancelled")
    await finishedAt(rest.url, broadcastPath(id), "publisher", 60_000)
    assert.lengthOf(await paused(nats.url, id), 1)
  })
})
