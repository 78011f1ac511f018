// A site moves in: all its subscriptions are imported, get broadcasts, and some of their browsers
// come back and move to the new key. Nobody is missed, and nobody gets a push twice.
// IMPORT_SUBSCRIPTIONS=10000 is the size of a site; 300 take a few seconds.
import { assert, it } from "vitest"
import { endpointHash } from "#domain/subscription/owners.ts"
import { call, finished, publish, registrationsSeen, until } from "../support/client.ts"
import { formerBrowser, formerKeys, formerPair, makeFiles, settingsOn } from "../support/imports.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { startService, vapid } from "../support/service.ts"
import { spawnCli } from "../support/spawn-cli.ts"
import type { UserAgent } from "../support/user-agent.ts"
import { listed } from "../support/vapid-keys.ts"

const size = Number(process.env["IMPORT_SUBSCRIPTIONS"] ?? 300)
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
const numbersOf = (...agents: ReadonlyArray<UserAgent>) =>
  agents.flatMap(({ received }) => received.map(({ text }) => JSON.parse(text).n)).sort()

it("moves a site in, and its users to the new key, without a missed or a second push", {
  timeout: 600_000
}, async () => {
  await using nats = await startNats({ syncAlways: false })
  await using push = await startPushService()
  await using service = await startService({ natsUrl: nats.url, env: formerKeys })
  using files = makeFiles()
  const { url } = service
  const env = settingsOn(nats.url)
  const old = Array.from({ length: size }, () => formerBrowser(push))
  const file = files.of(old.map(({ subscription }) => subscription))
  const args = ["import", file, "--vapid-public-key", formerPair.publicKey, "--channel", "news"]
  await using verb = await spawnCli(args, env)
  assert.equal(await verb.exit(), 0, verb.output.stderr)
  assert.equal(verb.output.stdout, `${size} of ${size} lines were stored\n`)

  const reachesAll = async (n: number) => {
    const broadcast = await publish(url, "news", { n })
    // Requests of this process would wait behind the thousands that its push service decrypts.
    await push.waitFor(({ counts }) => counts.total >= n * size, 300_000)
    const counts = await finished(url, "news", broadcast)
    assert.deepInclude(counts, { accepted: size, delivered: size })
  }
  const post = async (n: number, body: object) => {
    const { status } = await call(url, "POST", "/subscriptions", `user${n}`, body)
    assert.equal(status, 201)
  }
  await reachesAll(1)
  await each(returning, (n) =>
    post(n, { data: { ...old[n]!.subscription, vapid_public_key: formerPair.publicKey } })
  )
  await reachesAll(2)
  const own = old
    .slice(0, returning)
    .map(() => push.subscribe({ applicationServerKey: vapid.publicKey }))
  await each(returning, (n) =>
    post(n, {
      data: { ...own[n]!.subscription, vapid_public_key: vapid.publicKey },
      replaces: endpointHash(old[n]!.subscription.endpoint)
    })
  )
  await reachesAll(3)

  // Each agent refuses pushes that are not signed with the key of its subscription.
  assert.deepEqual(push.faults, [])
  for (const [n, agent] of old.entries()) {
    assert.deepEqual(numbersOf(agent), n < returning ? [1, 2] : [1, 2, 3])
    if (n < returning) assert.deepEqual(numbersOf(own[n]!), [3])
  }
  await until(
    () => registrationsSeen(url, "news", "user0"),
    (count) => count === size
  )
  assert.deepEqual(
    (await listed(env)).map(({ publicKey, subscriptions }) => [publicKey, subscriptions]),
    [
      [formerPair.publicKey, size - returning],
      [vapid.publicKey, returning]
    ]
  )
})
