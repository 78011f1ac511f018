// How many copies a stream has: a start changes them only upwards, and a verb lowers them. The
// cluster has less storage than the streams are declared with.
import { assert, it } from "vitest"
import { type BucketName, bucketStream, buckets } from "#streams/buckets.ts"
import { allStreams } from "#streams/index.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startNatsCluster } from "../support/nats-cluster.ts"
import { runCli } from "../support/run-cli.ts"
import { startService } from "../support/service.ts"

const names = [
  ...allStreams.map(({ name }) => name),
  ...(Object.keys(buckets) as Array<BucketName>).map(bucketStream)
]

const gibibyte = 1024 ** 3
const storageOfServer = 6

it("keeps the copies of streams when unset, and lowers them by an explicit verb only", {
  timeout: 120_000
}, async () => {
  await using cluster = await startNatsCluster(`${storageOfServer}GB`)
  const natsUrl = cluster.urls.join(",")
  /** Starts a process with this setting, and stops it. */
  const start = async (replicas?: string) => {
    const env = replicas === undefined ? {} : { BELLCAST_REPLICAS: replicas }
    await using service = await startService({ natsUrl, roles: "projection", env })
    await service.stop()
  }
  const refusal = (replicas: string) => start(replicas).catch(({ message }: Error) => message)

  await Promise.all([start("3"), start("3")])
  await using admin = await connectAdmin(cluster.urls[0]!)
  const copies = async () =>
    new Set(
      await Promise.all(
        names.map(async (name) => (await admin.jsm.streams.info(name)).config.num_replicas)
      )
    )
  assert.deepStrictEqual(await copies(), new Set([3]))

  const infos = await Promise.all(names.map((name) => admin.jsm.streams.info(name)))
  const reserved = infos.reduce((sum, { config }) => sum + config.max_bytes, 0)
  assert.isAtMost(reserved, storageOfServer * gibibyte)
  assert.isAbove(reserved, (storageOfServer * gibibyte) / 2)

  await admin.jsm.streams.delete(bucketStream("cache"))
  await start()
  assert.deepStrictEqual(await copies(), new Set([3]), "unset, also for a stream made again")

  assert.include(
    await refusal("1"),
    "BELLCAST_REPLICAS=1, but BELLCAST_LOG has 3 copies. Leave it unset to keep them, or give " +
      "copies up with `bellcast streams --replicas 1`"
  )
  assert.deepStrictEqual(await copies(), new Set([3]), "refused")

  const lowered = await runCli(["streams", "--replicas", "1", "--nats", natsUrl])
  assert.strictEqual(lowered.code, 0, lowered.stderr)
  assert.deepStrictEqual(await copies(), new Set([1]), "by the verb")
  await start("1")
  await start("3")
  assert.deepStrictEqual(await copies(), new Set([3]), "raised by a start")
})
