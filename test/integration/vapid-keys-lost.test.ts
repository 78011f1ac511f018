// VAPID keys that are retired or lost: the operator is told what becomes of the subscriptions made
// with them.
import { rm } from "node:fs/promises"
import { join as joinPath } from "node:path"
import { assert, describe, it } from "vitest"
import { call, finished, publish } from "../support/client.ts"
import { temporaryFolder } from "../support/folder.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { secretEnvironment, startService, vapid } from "../support/service.ts"
import {
  enter,
  keys,
  listed,
  received,
  refusedStart,
  rotate,
  withLines
} from "../support/vapid-keys.ts"

const first = vapid.publicKey

describe("a key that is given up", () => {
  it("is refused while subscriptions need it; by force, their pushes end as dead and say why", {
    timeout: 180_000
  }, async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    const env = await rotate({ ...secretEnvironment, BELLCAST_NATS_URL: nats.url })
    const second = env["BELLCAST_VAPID_PUBLIC_KEY"]!
    const [old, current] = [
      push.subscribe({ applicationServerKey: first }),
      push.subscribe({ applicationServerKey: second })
    ]
    {
      await using service = await startService({ natsUrl: nats.url, env })
      await enter(service.url, "old", old, { vapid_public_key: first })
      await enter(service.url, "current", current)
      await service.stop()
    }
    const needed = await keys(env, "retire", first)
    assert.equal(needed.code, 1)
    assert.match(needed.stderr, /^bellcast: 1 subscription was made with this key/)
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
    const dead = await runCli(["dead", broadcast, "--json", "--nats", nats.url])
    assert.equal(dead.code, 0, dead.stderr)
    assert.deepInclude(JSON.parse(dead.stdout), { reason: "key-retired", attempts: 1 })
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
  it("stops the start, which names it, for as long as a subscription needs it", {
    timeout: 180_000
  }, async () => {
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
    for (const roles of [
      "gateway,projection",
      "delivery",
      "gateway,projection,fanout,delivery,tally"
    ]) {
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
    assert.match(service.output(), /offered before are missing; no subscription needs them/)
  })

  it("with the data folder's secrets, can be given up explicitly", {
    timeout: 180_000
  }, async () => {
    await using push = await startPushService()
    const folder = await temporaryFolder()
    const env = { BELLCAST_DATA_DIR: folder }
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
    // The secret of user ids was in the same file.
    assert.include(await refusedStart({ env }), "bellcast keys forget-users --force")
    assert.equal((await keys(env, "forget-users")).code, 1)
    assert.equal((await keys(env, "forget-users", "--force")).code, 0)
    await using service = await startService({ env })
    await service.stop()
    assert.deepEqual(
      (await listed(env)).map(({ publicKey, state, subscriptions }) => [
        publicKey === lost,
        state,
        subscriptions
      ]),
      [
        [true, "retired", 1],
        [false, "current", 0]
      ]
    )
  })
})
