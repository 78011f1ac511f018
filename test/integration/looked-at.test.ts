// The audit of a user says which operators looked at the user, and at what; what they look at is
// read in turns.
import { Effect, Fiber } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { inTurn, listsAtOnce } from "#gateway/broadcasts/broadcast-list.ts"
import { personOf } from "#gateway/users/user.ts"
import { natsLayer } from "#nats/layer.ts"
import { call, finished, join, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { type Service, startService } from "../support/service.ts"
import { idOf, tokenOf } from "../support/users.ts"

const operators = ["desk", "support"]
const env = {
  BELLCAST_CHANNEL_WRITE_PRINCIPALS: idOf("publisher"),
  BELLCAST_OPERATOR_PRINCIPALS: operators.map((each) => idOf(each)).join(" ")
}
const personPath = (user: string) => `/users/${encodeURIComponent(idOf(user))}`

describe("what an operator looks at of a user", { timeout: 60_000 }, () => {
  const stack = new AsyncDisposableStack()
  let natsUrl: string
  let service: Service
  let broadcast: string
  beforeAll(async () => {
    const nats = stack.use(await startNats())
    natsUrl = nats.url
    const push = stack.use(await startPushService())
    service = stack.use(await startService({ natsUrl, env }))
    const subscriptions = [0, 1].map(() => push.subscribe().subscription)
    await join([service.url], "news", subscriptions)
    broadcast = await publish(service.url, "news", { n: 1 })
    await finished(service.url, "news", broadcast)
  })
  afterAll(() => stack.disposeAsync())

  const status = async (path: string, user: string) =>
    (await call(service.url, "GET", path, user)).status
  const audit = async (user: string, ...more: ReadonlyArray<string>) =>
    (await runCli(["audit", "--user", tokenOf(user), ...more, "--nats", natsUrl])).stdout
  const looks = async (user: string) =>
    (await audit(user, "--json"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
      .filter((line) => "looked_at" in line)
      .map(({ by, broadcast: id, looked_at }) => [looked_at, by, id])

  it("stands in the audit of that user, once where it is repeated within a minute", async () => {
    const pushes = (user: string, id = broadcast) =>
      `/broadcasts/${id}/pushes?user=${encodeURIComponent(idOf(user))}`
    // All within a minute.
    await until(
      async () => new Date().getSeconds(),
      (second) => second < 50
    )
    for (const operator of [...operators, ...operators])
      assert.equal(await status(personPath("user0"), operator), 200)
    assert.equal(await status(pushes("user0"), "desk"), 200)
    assert.equal(await status(pushes("user0", "999999"), "desk"), 404)
    assert.equal(await status(pushes("user0"), "publisher"), 403)
    assert.equal(await status(personPath("user0"), "user1"), 403)
    assert.deepEqual(await looks("user0"), [
      ["user", idOf("desk"), undefined],
      ["user", idOf("support"), undefined],
      ["pushes", idOf("desk"), Number(broadcast)]
    ])
    assert.deepEqual(await looks("user1"), [])
    const table = await audit("user0")
    assert.match(table, /^LOOKED AT +AT +BY +BROADCAST$/m)
    assert.match(table, new RegExp(`^pushes +20\\S+Z +${idOf("desk")} +${broadcast}$`, "m"))
    assert.notMatch(await audit("user0", "--before", "2026-01-01T00:00:00Z"), /LOOKED AT/)
  })

  // Both hold megabytes, so they take turns.
  it("is read when a list of broadcasts has ended", async () => {
    const read = personOf({ id: idOf("anna"), user: tokenOf("anna") }, "desk")
    const program = Effect.gen(function* () {
      const lists = Array.from({ length: listsAtOnce }, (_, i) => inTurn(`${i}`, Effect.never))
      const held = yield* Effect.forEach(lists, (list) => Effect.forkScoped(list))
      const reading = yield* Effect.forkScoped(read)
      const early = yield* Effect.timeoutOption(Fiber.await(reading), "1 second")
      assert.equal(early._tag, "None")
      yield* Effect.forEach(held, (list) => Fiber.interrupt(list))
      const { person } = yield* Fiber.join(reading)
      assert.deepInclude(person, { registrations: 0, pushes: [] })
    })
    const layer = natsLayer({ url: natsUrl, name: "test" })
    await Effect.runPromise(program.pipe(Effect.provide(layer), Effect.scoped))
  })

  it("is shown also while WORK has no room for the record, and the log warns", async () => {
    await using admin = await connectAdmin(natsUrl)
    const { config, state } = await admin.jsm.streams.info("BELLCAST_WORK")
    await admin.jsm.streams.update("BELLCAST_WORK", { max_bytes: state.bytes })
    assert.equal(await status(personPath("user1"), "desk"), 200)
    assert.deepEqual(await looks("user1"), [])
    const lost = new RegExp(`"person":"${tokenOf("user1")}".*"the audit lacks a look at a user"`)
    await until(
      async () => service.output(),
      (output) => lost.test(output)
    )
    await admin.jsm.streams.update("BELLCAST_WORK", { max_bytes: config.max_bytes })
    await until(
      async () => {
        await status(personPath("user1"), "desk")
        return looks("user1")
      },
      (found) => found.length > 0
    )
  })
})
