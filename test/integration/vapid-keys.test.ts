// The VAPID keys of a running service: changed without losing a subscriber, given up, lost.
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join as joinPath } from "node:path"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { logLayer } from "#log/layer.ts"
import { Log } from "#log/log.ts"
import { eachEntry } from "#log/operate.ts"
import { type BucketName, buckets } from "#streams/buckets.ts"
import { call, finished, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { refuse } from "../support/push-script.ts"
import { startPushService } from "../support/push-service.ts"
import { secretEnvironment, startService, vapid } from "../support/service.ts"
import { spawnCli } from "../support/spawn-cli.ts"
import type { UserAgent } from "../support/user-agent.ts"

type Env = Readonly<Record<string, string>>

const keys = async (env: Env, ...args: ReadonlyArray<string>) => {
  await using cli = spawnCli(["keys", ...args], env)
  const code = await cli.exit()
  return { code, ...cli.output }
}

/** The settings that a verb printed, over those there were. */
const withLines = (env: Env, lines: string): Env => ({
  ...env,
  ...Object.fromEntries(lines.split("\n").flatMap((line) => (/^BELLCAST_\w+=/.test(line) ? [line.split("=", 2) as [string, string]] : [])))
})

const rotate = async (env: Env): Promise<Env> => {
  const { code, stderr, stdout } = await keys(env, "rotate")
  assert.equal(code, 0, stderr)
  return withLines(env, stdout)
}

const listed = async (env: Env): Promise<ReadonlyArray<{ publicKey: string; state: string; created?: string; subscriptions: number }>> => {
  const { code, stderr, stdout } = await keys(env, "list", "--json")
  assert.equal(code, 0, stderr)
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
}

const enter = async (base: string, user: string, { subscription }: UserAgent, extra: Env = {}) => {
  assert.equal((await call(base, "POST", "/subscriptions", user, { data: { ...subscription, ...extra } })).status, 201)
  assert.equal((await call(base, "PUT", "/channels/news/registration", user)).status, 202)
}

const refusedStart = async (options: Parameters<typeof startService>[0]): Promise<string> => {
  const error = await startService(options).then(
    async (service) => {
      await service.kill()
      throw new Error(`it started: ${service.output()}`)
    },
    (failure: Error) => failure
  )
  return JSON.parse(error.message.split("\n").find((line) => line.includes('"level":60'))!).msg
}

/** Every message of both streams and every entry of the buckets, with what names them. */
const everythingIn = (url: string) =>
  Effect.runPromise(
    Effect.gen(function* () {
      const log = yield* Log
      const found: Array<string> = []
      for (const stream of ["log", "work"] as const) {
        yield* log.replay(stream, [">"], ({ subject, text }) => Effect.sync(() => void found.push(subject, text)))
      }
      for (const bucket of Object.keys(buckets) as Array<BucketName>) {
        yield* eachEntry(bucket, (key, value) => void found.push(key, JSON.stringify(value)))
      }
      return found.join("\n")
    }).pipe(Effect.provide(logLayer({ url, name: "test" })))
  )

const first = vapid.publicKey
const received = (agents: ReadonlyArray<UserAgent>) => agents.map((agent) => agent.received.length)

describe("a rotation", () => {
  it("reaches those who subscribed before and after, while a worker with the former settings still runs", { timeout: 90_000 }, async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    const env = { ...secretEnvironment, BELLCAST_NATS_URL: nats.url }
    await using former = await startService({ natsUrl: nats.url })
    const before = push.subscribe({ applicationServerKey: first })
    await enter(former.url, "before", before)

    const after = await rotate(env)
    const second = after["BELLCAST_VAPID_PUBLIC_KEY"]!
    assert.notEqual(second, first)
    await using service = await startService({ natsUrl: nats.url, env: after })
    assert.equal((await call(service.url, "GET", "/vapid-public-key")).body.data.vapid_public_key, second)
    const current = push.subscribe({ applicationServerKey: second })
    const stale = push.subscribe({ applicationServerKey: first })
    await enter(service.url, "current", current)
    await enter(service.url, "stale", stale, { vapid_public_key: first })
    // Replaced without a word about the key: the endpoint is the same, so the key is.
    const { id } = (await call(service.url, "GET", "/subscriptions", "stale")).body.data[0]
    assert.equal((await call(service.url, "PUT", `/subscriptions/${id}`, "stale", { data: stale.subscription })).status, 200)

    // Several, so that both workers get some: the former one has no second key, and leaves its pushes to the other.
    for (let n = 1; n <= 4; n++) {
      const counts = await finished(service.url, "news", await publish(service.url, "news", { n }))
      assert.deepInclude(counts, { accepted: 3, delivered: 3 })
    }
    assert.deepEqual(received([before, current, stale]), [4, 4, 4])
    assert.deepEqual(push.faults, [])
    const list = await listed(after)
    assert.deepEqual(
      list.map(({ publicKey, state, subscriptions }) => [publicKey, state, subscriptions]),
      [
        [first, "kept", 2],
        [second, "current", 1]
      ]
    )
    for (const { created } of list) assert.isAtMost(Math.abs(Date.now() - Date.parse(created!)), 90_000)

    const told = [former.output(), service.output(), await everythingIn(nats.url)].join("\n")
    assert.include(told, second)
    for (const pair of [env, after]) assert.notInclude(told, pair["BELLCAST_VAPID_PRIVATE_KEY"]!)
    assert.notMatch(told, /vapid t=/)
  })

  it("reaches one who subscribed with a former key and did not say so, and remembers it", { timeout: 90_000 }, async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    const env = await rotate(await rotate({ ...secretEnvironment, BELLCAST_NATS_URL: nats.url }))
    await using service = await startService({ natsUrl: nats.url, env })
    const silent = push.subscribe({ applicationServerKey: first })
    const current = push.subscribe({ applicationServerKey: env["BELLCAST_VAPID_PUBLIC_KEY"]! })
    await enter(service.url, "current", current)
    await finished(service.url, "news", await publish(service.url, "news", { n: 1 }))
    await enter(service.url, "silent", silent)
    const counts = await finished(service.url, "news", await publish(service.url, "news", { n: 2 }))
    assert.deepInclude(counts, { accepted: 2, delivered: 2, gone: 0 })
    assert.deepEqual(received([silent, current]), [1, 2])
    assert.lengthOf((await call(service.url, "GET", "/subscriptions", "silent")).body.data, 1)
    // Found out once, and noted: the next push is signed with the right key at once.
    await until(
      () => listed(env),
      ([oldest]) => oldest!.subscriptions === 1
    )
    assert.lengthOf(push.faults, 2)
    await finished(service.url, "news", await publish(service.url, "news", { n: 3 }))
    assert.deepEqual(received([silent, current]), [2, 3])
    assert.lengthOf(push.faults, 2)
  })

  it("keeps the troubles of one key from the pushes signed with another", { timeout: 90_000 }, async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    const env = await rotate({ ...secretEnvironment, BELLCAST_NATS_URL: nats.url })
    await using service = await startService({ natsUrl: nats.url, env: { ...env, BELLCAST_BREAKER_OPEN_MILLIS: "3600000" } })
    const refused = Array.from({ length: 10 }, () => push.subscribe({ applicationServerKey: first }))
    for (const agent of refused) Object.assign(agent, { nextAnswer: () => refuse(403, "BadJwtToken") })
    const taken = push.subscribe({ applicationServerKey: env["BELLCAST_VAPID_PUBLIC_KEY"]! })
    for (const [i, agent] of refused.entries()) await enter(service.url, `refused${i}`, agent, { vapid_public_key: first })
    const opened = await publish(service.url, "news", { n: 1 })
    await until(
      () => call(service.url, "GET", `/channels/news/broadcasts/${opened}`, "publisher"),
      ({ body }) => body.data.retrying === 10
    )
    assert.match(service.output(), /refuses our credentials/)
    await enter(service.url, "taken", taken)
    const broadcast = await publish(service.url, "news", { n: 2 })
    const { body } = await until(
      () => call(service.url, "GET", `/channels/news/broadcasts/${broadcast}`, "publisher"),
      ({ body }) => body.data.retrying === 10 && body.data.waiting === 0
    )
    assert.deepInclude(body.data, { accepted: 11, delivered: 1, retrying: 10 })
    assert.equal(taken.received.length, 1)
  })
})

describe("a key that is given up", () => {
  it("is refused while subscriptions need it; by force, their pushes end as dead and say why", { timeout: 90_000 }, async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    const env = await rotate({ ...secretEnvironment, BELLCAST_NATS_URL: nats.url })
    const second = env["BELLCAST_VAPID_PUBLIC_KEY"]!
    const [old, current] = [push.subscribe({ applicationServerKey: first }), push.subscribe({ applicationServerKey: second })]
    {
      await using service = await startService({ natsUrl: nats.url, env })
      await enter(service.url, "old", old, { vapid_public_key: first })
      await enter(service.url, "current", current)
      await service.stop()
    }
    const needed = await keys(env, "retire", first)
    assert.equal(needed.code, 1)
    assert.match(needed.stderr, /^bellcast: 1 subscriptions were made with this key/)
    assert.equal(needed.stdout, "")
    assert.match((await keys(env, "retire", second, "--force")).stderr, /the current one/)
    assert.match((await keys(env, "retire", "nonsense")).stderr, /no such key/)

    const forced = await keys(env, "retire", first, "--force")
    assert.equal(forced.code, 0, forced.stderr)
    const left = withLines(env, forced.stdout)
    assert.equal(left["BELLCAST_VAPID_FORMER_KEYS"], `${first}:retired`)
    assert.equal(left["BELLCAST_VAPID_PUBLIC_KEY"], second)
    await using service = await startService({ natsUrl: nats.url, env: left })
    const broadcast = await publish(service.url, "news", { n: 1 })
    const counts = await finished(service.url, "news", broadcast)
    assert.deepInclude(counts, { accepted: 2, delivered: 1, dead: 1 })
    assert.deepEqual(received([old, current]), [0, 1])
    assert.equal(push.requests, 1)
    await using dead = spawnCli(["dead", broadcast, "--json"], { BELLCAST_NATS_URL: nats.url })
    assert.equal(await dead.exit(), 0, dead.output.stderr)
    assert.deepInclude(JSON.parse(dead.output.stdout), { reason: "key-retired", attempts: 1 })
    const again = { data: { ...old.subscription, vapid_public_key: first } }
    assert.equal((await call(service.url, "POST", "/subscriptions", "another", again)).status, 400)
    assert.deepEqual(
      (await listed(left)).map(({ state, subscriptions }) => [state, subscriptions]),
      [
        ["retired", 1],
        ["current", 1]
      ]
    )
  })
})

describe("a key that was lost", () => {
  it("stops the start, which names it, for as long as a subscription needs it", { timeout: 90_000 }, async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    const before = { ...secretEnvironment, BELLCAST_NATS_URL: nats.url }
    const env = await rotate(before)
    {
      await using service = await startService({ natsUrl: nats.url })
      await enter(service.url, "user", push.subscribe({ applicationServerKey: first }))
      await service.stop()
    }
    const lost = { ...env, BELLCAST_VAPID_FORMER_KEYS: "" }
    for (const roles of ["gateway,projection", "delivery", "gateway,projection,fanout,delivery,tally"]) {
      const message = await refusedStart({ natsUrl: nats.url, roles, env: lost })
      assert.include(message, `\n${first} (1 subscriptions)\n`)
      assert.include(message, "bellcast keys retire")
      for (const name of ["BELLCAST_VAPID_PRIVATE_KEY", "BELLCAST_VAPID_FORMER_KEYS"] as const) {
        assert.notInclude(message, env[name]!.split(":").at(-1)!)
      }
    }
    assert.deepEqual(
      (await listed(lost)).map(({ state, subscriptions }) => [state, subscriptions]),
      [
        ["lost", 1],
        ["current", 0]
      ]
    )
    await using restored = await startService({ natsUrl: nats.url, env })
    assert.equal((await call(restored.url, "DELETE", "/subscriptions", "user")).status, 200)
    await restored.stop()
    // Nobody needs it any more.
    await using service = await startService({ natsUrl: nats.url, env: lost })
    assert.match(service.output(), /not in the set any more; no subscription needs them/)
  })

  it("with the data folder's secrets, can be given up explicitly", { timeout: 90_000 }, async () => {
    await using push = await startPushService()
    const folder = await mkdtemp(joinPath(tmpdir(), "bellcast-lost-"))
    const env = { BELLCAST_DATA_DIR: folder }
    try {
      let lost: string
      {
        await using service = await startService({ env })
        lost = (await call(service.url, "GET", "/vapid-public-key")).body.data.vapid_public_key
        await enter(service.url, "user", push.subscribe({ applicationServerKey: lost }))
        await service.stop()
      }
      await rm(joinPath(folder, "secrets.json"))
      assert.include(await refusedStart({ env }), `\n${lost} (1 subscriptions)\n`)
      assert.equal((await keys(env, "retire", lost)).code, 1)
      const forced = await keys(env, "retire", lost, "--force")
      assert.equal(forced.code, 0, forced.stderr)
      await using service = await startService({ env })
      await service.stop()
      assert.deepEqual(
        (await listed(env)).map(({ publicKey, state, subscriptions }) => [publicKey === lost, state, subscriptions]),
        [
          [true, "retired", 1],
          [false, "current", 0]
        ]
      )
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
})
