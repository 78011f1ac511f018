// A stream that fills up is reported in time, and its size is a setting that applies from the next
// start.
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Effect, Layer, Logger } from "effect"
import { assert, it } from "vitest"
import { recreateBucket } from "#nats/admin/provision.ts"
import { natsLayer } from "#nats/layer.ts"
import { fullnessLayer } from "#nats/watch/space.ts"
import { StreamWatch } from "#nats/watch/streams.ts"
import { call, join, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { startService } from "../support/service.ts"

const bucket = "KV_bellcast_subscriptions"

const limited = (bytes: number) => ({
  BELLCAST_LOG_BYTES_MAX: String(bytes),
  BELLCAST_WORK_BYTES_MAX: "1000000"
})

it("tells that a stream fills up, and takes another limit at the next start", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats()
  await using push = await startPushService()
  await using first = await startService({ natsUrl: nats.url, env: limited(1_000_000) })
  await join(
    [first.url],
    "news",
    Array.from({ length: 120 }, () => push.subscribe().subscription)
  )
  const nc = await connect({ servers: nats.url })
  const jsm = await jetstreamManager(nc)
  const { config, state } = await jsm.streams.info("BELLCAST_LOG")
  await nc.close()
  assert.equal(config.max_bytes, 1_000_000)
  const verb = await runCli(["streams", "--live", "--nats", nats.url])
  assert.equal(verb.code, 0)
  assert.match(verb.stdout, /^BELLCAST_LOG .* history, 400 d +976\.6 KiB .* \d+ % +1$/mu)
  const days = { BELLCAST_HISTORY_DAYS: "120" }
  assert.match(
    (await runCli(["streams"], days)).stdout,
    /^BELLCAST_LOG .* history, 120 d +4 GiB /mu
  )
  assert.notInclude(first.output(), "% full")
  await first.stop()

  for (const [share, level, words] of [
    [0.8, 40, "more than 70 % full"],
    [0.92, 50, "more than 90 % full"]
  ] as const) {
    const bytesMax = Math.floor(state.bytes / share)
    await using service = await startService({ natsUrl: nats.url, env: limited(bytesMax) })
    const output = await until(
      async () => service.output(),
      (text) => text.includes("% full")
    )
    const lines = output.split("\n").filter((line) => line.includes("% full"))
    assert.lengthOf(lines, 1)
    assert.include(lines[0], words)
    assert.deepInclude(JSON.parse(lines[0]!), {
      level,
      stream: "BELLCAST_LOG",
      bytesMax,
      setting: "BELLCAST_LOG_BYTES_MAX"
    })
    const { body } = await call(service.url, "GET", "/__metrics__")
    assert.include(body, `bellcast_stream_bytes_max{stream="BELLCAST_LOG"} ${bytesMax}`)
    assert.match(body, /^bellcast_stream_bytes\{stream="BELLCAST_LOG"\} [1-9]/mu)
    const { stdout } = await runCli(["streams", "--live", "--nats", nats.url])
    const percent = Number(/^BELLCAST_LOG .* (\d+) % ! +1$/mu.exec(stdout)?.[1])
    assert.closeTo(percent, 100 * share, 5)
    await service.stop()
  }
})

it("warns about a full bucket; the size that an operator set lasts over a start and a rebuild", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats({ syncAlways: false })
  await using push = await startPushService()
  const post = (url: string, user: string) =>
    call(url, "POST", "/subscriptions", user, { data: push.subscribe().subscription })
  await using first = await startService({ natsUrl: nats.url })
  assert.equal((await post(first.url, "ann")).status, 201)
  const nc = await connect({ servers: nats.url })
  const jsm = await jetstreamManager(nc)
  const resize = async (bytesMax: number) => jsm.streams.update(bucket, { max_bytes: bytesMax })
  try {
    const { state } = await jsm.streams.info(bucket)
    await resize(state.bytes)
    await until(
      () => post(first.url, "bob"),
      ({ status }) => status === 507
    )
    const lines: Array<unknown> = []
    const logger = Logger.layer([Logger.make(({ message }) => void lines.push(message))])
    const told = until(
      async () => JSON.stringify(lines),
      (text) => text.includes("% full")
    )
    const layer = fullnessLayer.pipe(
      Layer.provide(StreamWatch.layer),
      Layer.provide(natsLayer({ url: nats.url, name: "test" })),
      Layer.provide(logger)
    )
    await Effect.runPromise(
      Effect.scoped(
        Effect.andThen(
          Layer.build(layer),
          Effect.promise(() => told)
        )
      )
    )
    // The projector may save its checkpoint in between: the bytes are those of a moment.
    const [[line, { bytes, ...details }]] = lines as [[string, { readonly bytes: number }]]
    assert.lengthOf(lines, 1)
    assert.equal(line, "a stream is more than 95 % full: requests that make it grow are refused")
    assert.isAbove(bytes, 0.95 * state.bytes)
    assert.deepEqual<object>(details, {
      stream: bucket,
      bytesMax: state.bytes,
      command: `nats stream edit ${bucket} --max-bytes`
    })

    const { stdout } = await runCli(["streams", "--live", "--nats", nats.url])
    assert.match(stdout, new RegExp(`^${bucket.slice(3)} .* (9[5-9]|100) % !$`, "mu"))
    assert.match(stdout, /^bellcast_cache .* 0 %$/mu)

    await resize(3_000_000_000)
    await until(
      () => post(first.url, "bob"),
      ({ status }) => status === 201
    )
    await first.stop()
    await using second = await startService({ natsUrl: nats.url })
    assert.equal((await jsm.streams.info(bucket)).config.max_bytes, 3_000_000_000)
    await second.stop()
    await Effect.runPromise(
      recreateBucket("subscriptions", 1).pipe(
        Effect.provide(natsLayer({ url: nats.url, name: "test" }))
      )
    )
    assert.equal((await jsm.streams.info(bucket)).config.max_bytes, 3_000_000_000)
  } finally {
    await nc.close()
  }
})
