// `bellcast rebuild` as operators meet it: what it waits for, what it refuses, what it prints.
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { jetstream } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Effect } from "effect"
import { addressIn, folderAt } from "#embedded/folder.ts"
import { embeddedServer } from "#embedded/server.ts"
import { natsLayer } from "#nats/layer.ts"
import { Notes } from "#rebuild/notes.ts"
import { pauseWork } from "#rebuild/write.ts"
import { temporaryFolder } from "#test/folder.ts"
import {
  administer,
  folded,
  foldingLayer,
  makeHistory,
  startWithHistory,
  useHistory
} from "#test/history.ts"
import { startNats } from "#test/nats.ts"
import { runCli } from "#test/run-cli.ts"
import { startService } from "#test/service.ts"
import { spawnCli } from "#test/spawn-cli.ts"

/** The first rebuild of this history is that of the first case: no later one pauses anything. */
const shared = useHistory()

describe("rebuild", { timeout: 90_000 }, () => {
  it("prints what it waits for while a message is unacknowledged, then goes on", async () => {
    const service = shared.history
    await using nc = Object.assign(await connect({ servers: service.url }), {
      [Symbol.asyncDispose]: () => nc.close()
    })
    const planner = await jetstream(nc).consumers.get("BELLCAST_LOG", "planner")
    const inHand = await planner.next()
    await using cli = await spawnCli(["rebuild", "--nats", service.url])
    await cli.printed(/^bellcast: waiting for 1 messages that workers have in hand, at most 5 s$/m)
    inHand!.ack()
    await cli.printed(/^rebuilt in/m)
    assert.strictEqual(await cli.exit(), 0)
    assert.notInclude(cli.output.stderr, "broadcast finished")
  })

  it("as a verb prints the entries of each bucket, or that there are no streams", async () => {
    const service = shared.history
    const { code, stderr, stdout } = await runCli(["rebuild", "--nats", service.url])
    assert.strictEqual(code, 0)
    assert.notInclude(stderr, "waiting until")
    // 12 lists, and 16 pages of the index of endpoints.
    assert.match(stdout, /^bellcast_subscriptions +28 +\d+$/m)
    assert.match(stdout, /^bellcast_broadcasts +1 +\d+$/m)
    assert.match(stdout, /^rebuilt in \d+ ms$/m)
    await using empty = await startNats({ syncAlways: false })
    const nothing = await runCli(["rebuild", "--nats", empty.url])
    assert.strictEqual(nothing.code, 1)
    assert.strictEqual(
      nothing.stderr,
      "bellcast: this NATS has no stream BELLCAST_LOG: there is nothing to rebuild from\n"
    )
  })

  it("gives up with a reason, and touches nothing, while a service runs", async () => {
    const service = shared.history
    await using admin = await administer(service.url)
    const verb = Effect.promise(async () => ({
      before: await admin.entries(),
      ...(await runCli(["rebuild", "--nats", service.url]))
    }))
    // The process that has just folded something holds the lease.
    const { before, code, stderr, stdout } = await Effect.runPromise(
      Effect.andThen(folded(service.lastWork - 1), verb).pipe(
        Effect.provide(foldingLayer(service.url))
      )
    )
    assert.strictEqual(code, 1)
    const waits = "bellcast: waiting for the lease of the projector, at most 5 s"
    assert.strictEqual(
      stderr,
      `${waits}\nbellcast: a running service holds the lease of the projector: stop it first\n`
    )
    assert.strictEqual(stdout, "")
    assert.deepStrictEqual(await admin.entries(), before)
  })

  it("says what waits after it ended halfway, and so does the next start", async () => {
    // A history whose buckets were rebuilt before has nothing to pause for.
    await using service = await startWithHistory()
    const told: Array<string> = []
    const halfway = Effect.flatMap(pauseWork, ({ keep }) => keep).pipe(
      Effect.scoped,
      Effect.provideService(Notes, {
        note: (text) => Effect.sync(() => void told.push(text)),
        reach: () => Effect.void
      }),
      Effect.provide(natsLayer({ url: service.url, name: "test" }))
    )
    await Effect.runPromise(halfway)
    assert.deepStrictEqual(told, [
      "the buckets are half built: planning and delivery wait for an hour; run it again"
    ])
    const waits = new RegExp(
      '"level":40,.*"minutes":60,' +
        '"msg":"planning and delivery wait for a rebuild: .* run `bellcast rebuild`"'
    )
    await using paused = await startService({ natsUrl: service.url, roles: "tally" })
    assert.match(paused.output(), waits)
    await paused.stop()
    assert.strictEqual((await runCli(["rebuild", "--nats", service.url])).code, 0)
    await using resumed = await startService({ natsUrl: service.url, roles: "tally" })
    assert.notMatch(resumed.output(), waits)
  })

  it("as a verb starts the embedded server of a stopped service, and stops it again", async () => {
    const parent = await temporaryFolder()
    const past = Effect.gen(function* () {
      const { url } = yield* embeddedServer(parent)
      yield* Effect.provide(Effect.andThen(makeHistory, Effect.void), foldingLayer(url))
    })
    await Effect.runPromise(Effect.scoped(past))
    await using cli = await spawnCli(["rebuild"], { BELLCAST_DATA_DIR: parent })
    assert.strictEqual(await cli.exit(), 0, cli.output.stderr)
    assert.match(cli.output.stdout, /^bellcast_subscriptions +28 +\d+$/m)
    assert.isUndefined(await addressIn(folderAt(join(parent, "nats"))))
  })
})
