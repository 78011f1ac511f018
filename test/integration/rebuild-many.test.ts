// A rebuild of more than its memory holds, and one that is killed again and again.
import { assert, describe, it, vi } from "@effect/vitest"
import { endLeases, filled } from "#test/half-built.ts"
import { administer, bucketStreams } from "#test/history.ts"
import { startNats } from "#test/nats.ts"
import { spawnCli } from "#test/spawn-cli.ts"
import { storeUsers } from "#test/stored-users.ts"

/** Mebibytes: what the verb itself needs, and a part of the texts of the first case. */
const heapMax = 80
const kills = 10

const rebuilt = async (url: string, env: Readonly<Record<string, string>> = {}) => {
  await using cli = await spawnCli(["rebuild", "--nats", url], env)
  await cli.printed(/^rebuilt in/m, 100_000)
  assert.strictEqual(await cli.exit(), 0)
  return cli.output
}

describe("a rebuild of many entries", { timeout: 180_000 }, () => {
  it("needs a heap that holds a part of them only", async () => {
    await using nats = await startNats({ syncAlways: false })
    await storeUsers(nats.url, { to: 2_500, bytes: 24_000 })
    const heap = `--max-old-space-size=${heapMax}`
    const { stdout } = await rebuilt(nats.url, { NODE_OPTIONS: heap })
    const [, entries] = /^bellcast_subscriptions +(\d+)/m.exec(stdout) ?? []
    assert.isAtLeast(Number(entries), 2_500)
  })

  it(`killed ${kills} times, has every entry at the end, and has written none twice`, async () => {
    await using nats = await startNats({ syncAlways: false })
    await storeUsers(nats.url, { to: 1_500 })
    await using admin = await administer(nats.url)
    await rebuilt(nats.url)
    const [whole, { messages }] = [await admin.entries(), await filled(admin)]
    for (const stream of bucketStreams) await admin.jsm.streams.delete(stream)
    for (let n = 0; n < kills; n++) {
      const enough = Math.floor(((n + Math.random()) / kills) * messages)
      await using cli = await spawnCli(["rebuild", "--nats", nats.url])
      await vi.waitUntil(async () => (await filled(admin)).messages >= enough, {
        interval: 5,
        timeout: 60_000
      })
      cli.kill()
      assert.isNull(await cli.exit(), "it ended before it was killed")
      await endLeases(admin)
    }
    await rebuilt(nats.url)
    assert.deepStrictEqual(await admin.entries(), whole)
    // Beside the entries, each rebuild has written `meta` of each bucket at most twice.
    const { used } = await filled(admin)
    assert.isAtMost(used, messages + 2 * (kills + 1) * bucketStreams.length)
  })
})
