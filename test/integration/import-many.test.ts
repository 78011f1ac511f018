// A site moves in: all its subscriptions are imported, get broadcasts, and some of their browsers
// come back and move to the new key. Nobody is missed, and nobody gets a push twice.
// IMPORT_SUBSCRIPTIONS=10000 is the size of a site; 200 take a few seconds.
import { assert, it } from "vitest"
import { endpointHash } from "#domain/subscription/owners.ts"
import { call, finished, publish, registrationsSeen, until } from "../support/client.ts"
import { formerKeys, formerPair, makeFiles, settingsOn } from "../support/imports.ts"
import { startNats } from "../support/nats.ts"
import { startService, vapid } from "../support/service.ts"
import { spawnCli } from "../support/spawn-cli.ts"
import { type SpawnedPushService, spawnPushService } from "../support/spawn-push-service.ts"
import { listed } from "../support/vapid-keys.ts"

const size = Number(process.env["IMPORT_SUBSCRIPTIONS"] ?? 200)
const returning = Math.min(200, size / 5)
/** Users who come back at the same moment. */
const atOnce = 8

/** Runs a task for each number below `count`. */
const each = async (count: number, task: (n: number) => Promise<void>) => {
  let next = 0
  const hand = async () => {
    while (next < count) await task(next++)
  }
  await Promise.all(Array.from({ length: atOnce }, hand))
}
/** Each of so many browsers got one push since the last call, signed with its own key. */
const reached = async (push: SpawnedPushService, count: number) => {
  const { counts, faults } = await push.report()
  assert.deepEqual(faults, [])
  assert.deepEqual(counts, { requests: count, total: count, distinct: count, duplicates: 0 })
  await push.reset()
}

it("moves a site in, and its users to the new key, without a missed or a second push", {
  timeout: 900_000
}, async () => {
  await using nats = await startNats({ syncAlways: false })
  // Processes of their own: thousands of pushes are decrypted.
  await using atFormer = await spawnPushService()
  await using atOwn = await spawnPushService()
  await using service = await startService({ natsUrl: nats.url, env: formerKeys })
  using files = makeFiles()
  const { url } = service
  const env = settingsOn(nats.url)
  const [formerKey, ownKey] = [formerPair.publicKey, vapid.publicKey]
  const old = await atFormer.subscribe(size, { applicationServerKey: formerKey })
  const args = ["import", files.of(old), "--vapid-public-key", formerKey, "--channel", "news"]
  await using verb = await spawnCli(args, env)
  assert.equal(await verb.exit(), 0, verb.output.stderr)
  assert.equal(verb.output.stdout, `${size} of ${size} lines were stored\n`)

  const sent = async (n: number, former: number, own: number) => {
    const counts = await finished(url, "news", await publish(url, "news", { n }), 300_000)
    assert.deepInclude(counts, { accepted: size, delivered: size })
    await reached(atFormer, former)
    await reached(atOwn, own)
  }
  const post = async (n: number, body: object) => {
    const { status } = await call(url, "POST", "/subscriptions", `user${n}`, body)
    assert.equal(status, 201)
  }
  await sent(1, size, 0)
  await each(returning, (n) => post(n, { data: { ...old[n]!, vapid_public_key: formerKey } }))
  await sent(2, size, 0)
  const own = await atOwn.subscribe(returning, { applicationServerKey: ownKey })
  await each(returning, (n) =>
    post(n, {
      data: { ...own[n]!, vapid_public_key: ownKey },
      replaces: endpointHash(old[n]!.endpoint)
    })
  )
  await sent(3, size - returning, returning)

  await until(
    () => registrationsSeen(url, "news", "user0"),
    (count) => count === size
  )
  assert.deepEqual(
    (await listed(env)).map(({ publicKey, subscriptions }) => [publicKey, subscriptions]),
    [
      [formerKey, size - returning],
      [ownKey, returning]
    ]
  )
})
