// A start that makes buckets of an earlier form again while a disk is full: that of nats-server, or
// that of the temporary file. The other troubles: test/integration/earlier-form.test.ts.
import { join } from "node:path"
import { assert, expect, it, vi } from "@effect/vitest"
import { Effect } from "effect"
import { launch } from "#embedded/launch.ts"
import { locateNatsServer } from "#embedded/program/locate.ts"
import { smallDisk } from "#test/disk.ts"
import { endLeases } from "#test/half-built.ts"
import { administer, bucketStreams, rebuildAt } from "#test/history.ts"
import { startNats } from "#test/nats.ts"
import { startService } from "#test/service.ts"
import { storeUsers } from "#test/stored-users.ts"

const makers = { roles: "projection,tally", readyTimeoutMillis: 280_000 }

/** Stores users, and gives the buckets an earlier form. Returns their entries. */
const storeEarlier = async (url: string, users: Parameters<typeof storeUsers>[1]) => {
  await storeUsers(url, users)
  await rebuildAt(url)
  await using admin = await administer(url)
  const whole = await admin.entries()
  for (const stream of bucketStreams) {
    const { config } = await admin.jsm.streams.info(stream)
    const metadata = { ...config.metadata, bellcast_form: "1" }
    await admin.jsm.streams.update(stream, { ...config, metadata })
  }
  return whole
}

const entriesAt = async (url: string) => {
  await using admin = await administer(url)
  return await admin.entries()
}

it("says that the disk of NATS is full, loses nothing, and goes on by itself with room", {
  timeout: 400_000
}, async ({ skip }) => {
  await using disk = await smallDisk()
  if (disk === undefined) return skip("mounting a small tmpfs needs root")
  const nats = () =>
    Effect.runPromise(locateNatsServer).then((binary) =>
      launch({ binary, folder: join(disk.folder, "nats"), syncInterval: "2m" })
    )
  const before = await nats()
  const whole = await storeEarlier(before.url, { to: 2_000 })
  await before.stop()
  let output = ""
  let filled: Promise<void> | undefined
  // Again and again, as what a bucket had is removed before it is made.
  const fill = async () => {
    while (!/nats-server stores nothing/.test(output)) await disk.fill(64)
  }
  const ready = startService({
    ...makers,
    env: { BELLCAST_DATA_DIR: disk.folder },
    printed: (text) => {
      output += text
      // The first line of the fold: the buckets are as they were.
      if (/made again: BELLCAST_LOG/.test(output)) filled ??= fill()
    }
  })
  ready.catch(() => {})
  await vi.waitUntil(() => /is restarted when its disk has space again/.test(output), {
    interval: 50,
    timeout: 180_000
  })
  assert.match(output, /nats-server stores nothing. Its disk was full or failed/)
  await filled
  await disk.empty()
  const service = await ready
  await service.stop()
  const after = await nats()
  // The server asks for no login, and the password would be in the address.
  assert.deepStrictEqual(await entriesAt(`nats://127.0.0.1:${after.port}`), whole)
  await after.stop()
})

it("ends where the temporary file has no room, and a start with room goes on", {
  timeout: 400_000
}, async ({ skip }) => {
  await using disk = await smallDisk()
  if (disk === undefined) return skip("mounting a small tmpfs needs root")
  await using nats = await startNats({ syncAlways: false })
  // More than SQLite keeps in memory.
  const whole = await storeEarlier(nats.url, { to: 3_000, bytes: 25_000 })
  await disk.fill(64)
  const env = { SQLITE_TMPDIR: disk.folder }
  await expect(startService({ ...makers, natsUrl: nats.url, env })).rejects.toThrow(
    /cannot start\. .*a temporary file failed .*TMPDIR names/
  )
  await disk.empty()
  await using admin = await administer(nats.url)
  await endLeases(admin)
  const service = await startService({ ...makers, natsUrl: nats.url, env })
  await service.stop()
  assert.deepStrictEqual(await admin.entries(), whole)
})
