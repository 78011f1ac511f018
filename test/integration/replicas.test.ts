// How many copies a stream has: a start changes them only upwards, and a verb lowers them. The
// cluster has less storage than the streams are declared with.
import { assert, it } from "vitest"
import { type BucketName, bucketStream, buckets } from "#streams/buckets.ts"
import { allStreams } from "#streams/index.ts"
import { until } from "../support/client.ts"
import { connectAdmin, type NatsAdmin } from "../support/nats-admin.ts"
import { startNatsCluster } from "../support/nats-cluster.ts"
import { runCli } from "../support/run-cli.ts"
import { startService } from "../support/service.ts"

const names = [
  ...allStreams.map(({ name }) => name),
  ...(Object.keys(buckets) as Array<BucketName>).map(bucketStream)
]

const gibibyte = 1024 ** 3
const storageOfServer = 6

/** Adds streams until the servers have reserved more than they have. Returns how many. */
const reserveTooMuch = ({ jsm }: NatsAdmin) => {
  let added = 0
  return until(
    async () => {
      const others = Array.from({ length: 4 }, () =>
        jsm.streams.add({ name: `OTHER_${added++}`, num_replicas: 3, max_bytes: gibibyte })
      )
      await Promise.allSettled(others)
      return jsm.streams
        .update("OTHER_0", { max_age: added * 1e12 })
        .then(() => "accepted")
        .catch(({ message }: Error) => message)
    },
    (answer) => answer.includes("insufficient storage")
  ).then(() => added)
}

it("keeps the copies of streams when unset, and lowers them by an explicit verb only", {
  timeout: 240_000
}, async () => {
  await using cluster = await startNatsCluster(`${storageOfServer}GB`)
  const natsUrl = cluster.urls.join(",")
  /** Starts a process with this setting, and stops it. */
  const start = async (replicas?: string) => {
    const env = replicas === undefined ? {} : { BELLCAST_REPLICAS: replicas }
    await using service = await startService({
      natsUrl,
      roles: "projection",
      env,
      readyTimeoutMillis: 60_000
    })
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

  const added = await reserveTooMuch(admin)
  const full = await runCli(["streams", "--replicas", "1", "--nats", natsUrl])
  assert.strictEqual(full.code, 1)
  assert.include(full.stderr, "refuses every change, also to fewer copies. Raise max_file_store")
  for (let n = 0; n < added; n++)
    await admin.jsm.streams.delete(`OTHER_${n}`).catch(() => undefined)

  const lowered = await runCli(["streams", "--replicas", "1", "--nats", natsUrl])
  assert.strictEqual(lowered.code, 0, lowered.stderr)
  assert.deepStrictEqual(await copies(), new Set([1]), "by the verb")
  await start("1")
  await start("3")
  assert.deepStrictEqual(await copies(), new Set([3]), "raised by a start")
})
