// Starts where JetStream has little storage: limits that fit, kept by later starts, or a refusal
// that says what to do.
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { Effect, Layer } from "effect"
import { assert, it } from "vitest"
import { addressIn, folderAt } from "#embedded/folder.ts"
import { leastBytes } from "#nats/admin/ensure-streams.ts"
import { provision } from "#nats/admin/provision.ts"
import { Nats } from "#nats/connection/connection.ts"
import { natsLayer } from "#nats/layer.ts"
import { smallDisk } from "../support/disk.ts"
import { quiet } from "../support/history.ts"
import { startConfiguredNats } from "../support/nats-configured.ts"
import { claimPort } from "../support/ports.ts"
import { startService } from "../support/service.ts"

const mebibyte = 1024 ** 2
const run = promisify(execFile)

const at = <A, E>(url: string, program: Effect.Effect<A, E, Nats>) =>
  Effect.runPromise(
    program.pipe(Effect.provide(Layer.merge(natsLayer({ url, name: "test" }), quiet)))
  )

const limitsAt = (url: string) =>
  at(
    url,
    Effect.flatMap(Nats, ({ jsm }) =>
      Effect.promise(async () => {
        const limits: Record<string, number> = {}
        for await (const { config } of jsm.streams.list()) limits[config.name] = config.max_bytes
        return limits
      })
    )
  )

const sumOf = (limits: Readonly<Record<string, number>>) =>
  Object.values(limits).reduce((sum, limit) => sum + limit, 0)

it("starts on a disk with 2 GiB, keeps its limits, and names what to set where less is free", {
  timeout: 90_000
}, async ({ skip }) => {
  await using disk = await smallDisk()
  if (disk === undefined) return skip("mounting a small tmpfs needs root")
  const env = { BELLCAST_DATA_DIR: disk.folder }
  await using service = await startService({ env })
  assert.match(service.output(), /"percent":\d+,"msg":"JetStream has little storage/)
  const { url } = (await addressIn(folderAt(join(disk.folder, "nats"))))!
  const limits = await limitsAt(url)
  assert.isAtMost(sumOf(limits), 1_536 * mebibyte)
  assert.isAbove(sumOf(limits), 1_100 * mebibyte)

  // Another process with another idea of the disk, and a setting of the operator.
  await at(url, provision(1))
  assert.deepEqual(await limitsAt(url), limits)
  await at(url, provision(1, { BELLCAST_LOG: 100 * mebibyte }))
  assert.deepEqual(await limitsAt(url), { ...limits, BELLCAST_LOG: 100 * mebibyte })
  await service.stop()

  // The disk fills up with other files: what is reserved stays reserved.
  await run("fallocate", ["-l", `${1_900 * mebibyte}`, join(disk.folder, "other")])
  await using again = await startService({ env })
  assert.notInclude(again.output(), "little storage")
  await again.stop()
  const refused = await startService({
    env: { BELLCAST_DATA_DIR: join(disk.folder, "second") }
  }).catch(({ message }: Error) => message)
  assert.include(String(refused), `which need ${leastBytes({}) / mebibyte} MiB or more`)
  assert.include(String(refused), "BELLCAST_DATA_DIR")
  assert.notInclude(String(refused), "BELLCAST_NATS_URL")
})

it("starts after first starts that were killed while they looked for a share", async () => {
  const port = await claimPort()
  await using _server = await startConfiguredNats(port, "jetstream { max_file_store: 300MB }")
  const url = `nats://127.0.0.1:${port}`
  const left = { name: "BELLCAST_LOG", subjects: ["bellcast.cmd.>"], max_bytes: 230 * mebibyte }
  const probe = { name: "BELLCAST_PROBE", max_bytes: 40 * mebibyte }
  for (const stream of [left, probe])
    await at(
      url,
      Effect.flatMap(Nats, ({ jsm }) => Effect.promise(() => jsm.streams.add(stream)))
    )
  await at(url, provision(1))
  const limits = await limitsAt(url)
  assert.isAtMost(sumOf(limits), 300 * mebibyte)
  assert.notProperty(limits, probe.name)
})
