// A test of a subscription: one push to one browser, and what the push service said to it.
import { assert, describe, it } from "vitest"
import { call, finishedAt, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"
import { suspend } from "../support/suspend.ts"

/** A user with a browser for each script, and another user with one. */
const start = async (...scripts: ReadonlyArray<ReadonlyArray<string>>) => {
  await using stack = new AsyncDisposableStack()
  const nats = stack.use(await startNats())
  const push = stack.use(await startPushService())
  // Longer than a test waits for its push.
  const env = { BELLCAST_PUSH_TIMEOUT_MILLIS: "30000" }
  const { url } = stack.use(await startService({ natsUrl: nats.url, env }))
  const stored = async (user: string, script?: ReadonlyArray<string>) => {
    const agent = push.subscribe(script && { script })
    const data = agent.subscription
    const { id } = (await call(url, "POST", "/subscriptions", user, { data })).body.data
    return { agent, id: id as string }
  }
  const annas: Array<Awaited<ReturnType<typeof stored>>> = []
  for (const script of scripts) annas.push(await stored("anna", script))
  const berts = await stored("bert")
  const all = stack.move()
  return {
    nats,
    url,
    agents: [...annas, berts].map(({ agent }) => agent),
    ids: annas.map(({ id }) => id),
    bertsId: berts.id,
    test: (id: string, user = "anna", body?: unknown) =>
      call(url, "POST", `/subscriptions/${id}/test`, user, body),
    [Symbol.asyncDispose]: () => all.disposeAsync()
  }
}

describe("a test of a subscription", { timeout: 90_000 }, () => {
  it("sends one push to that browser alone, and shows its progress to its user", async () => {
    await using world = await start(["201"], ["201"])
    const { agents, ids, nats, test, url } = world
    await using admin = await connectAdmin(nats.url)
    const bytes = async () => (await admin.jsm.streams.info("BELLCAST_LOG")).state.bytes
    const before = await bytes()
    const first = await test(ids[0]!, "anna", { data: { hello: 1 } })
    assert.deepEqual(
      [first.status, first.body],
      [200, { data: { fate: "delivered", status: 201, reason: "accepted" } }]
    )
    const own = new URL(first.headers.get("location")!).pathname.replace("/v1", "")
    assert.deepInclude(await finishedAt(url, own, "anna"), { accepted: 1, delivered: 1 })
    assert.deepEqual(
      agents.map(({ attempts }) => attempts.length),
      [1, 0, 0]
    )
    assert.equal(agents[0]!.received[0]!.text, '{"hello":1}')
    assert.equal((await call(url, "GET", own, "bert")).status, 404)
    assert.equal((await test(ids[0]!, "bert")).status, 404)
    assert.isBelow((await bytes()) - before, 2_000)
  })

  it("says what became of the push, or after 10 s that there is no result", async () => {
    await using world = await start(["410"], ["503 retry-after 30"], ["400"], ["hang"])
    const { agents, bertsId, ids, nats, test } = world
    const saidOf = async (i: number) => (await test(ids[i]!)).body.data
    assert.deepEqual(await saidOf(0), { fate: "gone", status: 410, reason: "gone" })
    assert.deepInclude(await saidOf(1), { fate: "retrying", status: 503 })
    assert.deepInclude(await saidOf(2), { fate: "dead", status: 400 })
    assert.equal((await test(ids[0]!)).status, 404)
    assert.lengthOf(agents.at(-1)!.attempts, 0)
    await suspend(nats.url, "bert", bertsId)
    const suspended = { fate: "dead", reason: "suspended" }
    await until(
      () => test(bertsId, "bert"),
      ({ body }) => JSON.stringify(body.data) === JSON.stringify(suspended)
    )
    const began = performance.now()
    const late = await test(ids[3]!)
    assert.equal(late.status, 202)
    assert.isAbove(performance.now() - began, 9_500)
  })

  it("counts as a change of its user", async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    await using service = await startService({
      natsUrl: nats.url,
      env: { BELLCAST_CHANGES_PER_USER_PER_HOUR_MAX: "3" }
    })
    const data = push.subscribe().subscription
    const stored = await call(service.url, "POST", "/subscriptions", "anna", { data })
    const path = `/subscriptions/${stored.body.data.id}/test`
    const statuses: Array<number> = []
    for (let i = 0; i < 3; i++)
      statuses.push((await call(service.url, "POST", path, "anna")).status)
    assert.deepEqual(statuses, [200, 200, 429])
  })
})
