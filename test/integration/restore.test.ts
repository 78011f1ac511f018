// Undo of removals: subscriptions that a push service wrongly called gone are restored, and no
// others.
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters } from "#streams/subjects.ts"
import { call, finished, join, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { type Service, startService } from "../support/service.ts"

const run = (...args: ReadonlyArray<string>) => runCli(["restore", ...args])

/** Puts by who made them, as the log has it. */
const putsBy = (url: string) =>
  Effect.runPromise(
    Effect.gen(function* () {
      const log = yield* EventLog
      const makers: Array<string> = []
      yield* log.replay("log", [filters.subscriptions], ({ header, message }) =>
        Effect.sync(() => {
          if (message.type === "subscription.put") makers.push(header("Bellcast-By") ?? "user")
        })
      )
      return makers
    }).pipe(Effect.provide(natsLayer({ url, name: "test" })))
  )

const holders = async (service: Service, users: number) => {
  const lists = await Promise.all(
    Array.from({ length: users }, (_, i) => call(service.url, "GET", "/subscriptions", `user${i}`))
  )
  return lists.filter(({ body }) => body.data.length === 1).length
}

it("prints what it did before it failed", { timeout: 60_000 }, async () => {
  await using nats = await startNats({ syncAlways: false })
  await using push = await startPushService()
  await using service = await startService({ natsUrl: nats.url })
  const agents = [0, 1].map(() => push.subscribe({ script: ["410"] }))
  await join(
    [service.url],
    "news",
    agents.map(({ subscription }) => subscription)
  )
  await finished(service.url, "news", await publish(service.url, "news", { n: 1 }))
  await until(
    () => holders(service, 2),
    (count) => count === 0
  )
  await service.kill()
  const from = new Date(Date.now() - 60_000).toISOString()
  const { code, stderr, stdout } = await run("--from", from, "--nats", nats.url)
  assert.deepEqual([code, stdout], [1, "0 subscriptions of 2 users were restored\n"])
  assert.include(stderr, "no projection runs")
})

describe("a push service that called 8 of 20 gone by mistake", () => {
  it("gets them back, but not the one its user removed; a second restore changes nothing", {
    timeout: 90_000
  }, async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    await using service = await startService({ natsUrl: nats.url })
    const from = new Date(Date.now() - 60_000).toISOString()
    const agents = Array.from({ length: 21 }, (_, i) =>
      push.subscribe({ script: i < 8 ? ["410", "201"] : ["201"] })
    )
    await join(
      [service.url],
      "news",
      agents.map(({ subscription }) => subscription)
    )
    // A browser that tells of its subscription again, with something new beside it.
    const {
      id,
      last_modified: _,
      ...data
    } = (await call(service.url, "GET", "/subscriptions", "user0")).body.data[0]
    assert.equal(
      (
        await call(service.url, "PUT", `/subscriptions/${id}`, "user0", {
          data: { ...data, visits: 2 }
        })
      ).status,
      200
    )
    const counts = await finished(service.url, "news", await publish(service.url, "news", { n: 1 }))
    assert.deepInclude(counts, { accepted: 21, delivered: 13, gone: 8 })
    assert.equal((await call(service.url, "DELETE", "/subscriptions", "user20")).status, 200)
    await until(
      () => holders(service, 21),
      (count) => count === 12
    )

    const at = ["--from", from, "--nats", nats.url]
    const would = await run(...at, "--dry-run")
    assert.deepEqual(would, {
      code: 0,
      stdout: "8 subscriptions of 8 users would be restored: 8 gone\n",
      stderr: ""
    })
    assert.equal(await holders(service, 21), 12)
    for (const other of [
      ["--host", "push.example.org"],
      ["--cause", "suspended", "--cause", "key-mismatch"],
      ["--to", new Date(Date.parse(from) + 1).toISOString()]
    ])
      assert.equal(
        (await run(...at, ...other)).stdout,
        "0 subscriptions of 0 users were restored\n"
      )
    for (const to of [from, "2026-01-01T00:00:00Z"]) {
      const refused = {
        code: 1,
        stdout: "",
        stderr: "bellcast: --to must be later than --from: nothing lies between them\n"
      }
      assert.deepEqual(await run(...at, "--to", to), refused)
    }
    assert.equal(
      (await run(...at, "--host", "push.example.org", "--host", "127.0.0.1")).stdout,
      "8 subscriptions of 8 users were restored: 8 gone\n"
    )
    assert.equal((await run(...at)).stdout, "0 subscriptions of 0 users were restored\n")

    assert.equal((await call(service.url, "GET", "/subscriptions", "user0")).body.data[0].visits, 2)
    assert.deepEqual(await putsBy(nats.url), [
      ...Array(22).fill("user"),
      ...Array(8).fill("operator")
    ])

    push.reset()
    const again = await finished(service.url, "news", await publish(service.url, "news", { n: 2 }))
    assert.deepInclude(again, { accepted: 20, delivered: 20 })
    assert.deepEqual(
      agents.map(({ received }) => received.length),
      agents.map((_, i) => (i < 20 ? 1 : 0))
    )

    // Restored, then removed by its user: that is the last word.
    assert.equal((await call(service.url, "DELETE", "/subscriptions", "user0")).status, 200)
    assert.equal((await run(...at)).stdout, "0 subscriptions of 0 users were restored\n")
    assert.equal(await holders(service, 21), 19)
  })
})
