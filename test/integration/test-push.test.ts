// A test of a subscription: one push to one browser, and what the push service said to it.
import { assert, describe, it } from "vitest"
import { call, finishedAt, until } from "../support/client.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { suspend } from "../support/suspend.ts"
import { useService } from "../support/use-service.ts"

// Longer than a test waits for its push.
const shared = useService({ env: { BELLCAST_PUSH_TIMEOUT_MILLIS: "30000" } })

/** A user with a browser for each script, and another user with one. */
const start = async (
  anna: string,
  bert: string,
  ...scripts: ReadonlyArray<ReadonlyArray<string>>
) => {
  const { nats, service } = shared
  const { url } = service
  const push = await startPushService()
  const stored = async (user: string, script?: ReadonlyArray<string>) => {
    const agent = push.subscribe(script && { script })
    const data = agent.subscription
    const { id } = (await call(url, "POST", "/subscriptions", user, { data })).body.data
    return { agent, id: id as string }
  }
  const annas: Array<Awaited<ReturnType<typeof stored>>> = []
  for (const script of scripts) annas.push(await stored(anna, script))
  const berts = await stored(bert)
  return {
    nats,
    url,
    agents: [...annas, berts].map(({ agent }) => agent),
    ids: annas.map(({ id }) => id),
    bertsId: berts.id,
    test: (id: string, user = anna, body?: unknown) =>
      call(url, "POST", `/subscriptions/${id}/test`, user, body),
    [Symbol.asyncDispose]: () => push[Symbol.asyncDispose]()
  }
}

describe("a test of a subscription", { timeout: 90_000 }, () => {
  it("sends one push to that browser alone, and shows its progress to its user", async () => {
    await using world = await start("anna", "bert", ["201"], ["201"])
    const { agents, ids, nats, test, url } = world
    await using admin = await connectAdmin(nats.url)
    const bytes = async () => (await admin.jsm.streams.info("BELLCAST_LOG")).state.bytes
    const before = await bytes()
    const first = await test(ids[0]!, "anna", { data: { hello: 1 } })
    assert.deepEqual(
      [first.status, first.body],
      [200, { data: { outcome: "delivered", status: 201, reason: "accepted" } }]
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
    await using world = await start(
      "ann",
      "bob",
      ["410"],
      ["503 retry-after 30"],
      ["400"],
      ["hang"]
    )
    const { agents, bertsId, ids, nats, test } = world
    const saidOf = async (i: number) => (await test(ids[i]!)).body.data
    assert.deepEqual(await saidOf(0), { outcome: "gone", status: 410, reason: "gone" })
    assert.deepInclude(await saidOf(1), { outcome: "retrying", status: 503 })
    assert.deepInclude(await saidOf(2), { outcome: "dead", status: 400 })
    assert.equal((await test(ids[0]!)).status, 404)
    assert.lengthOf(agents.at(-1)!.attempts, 0)
    await suspend(nats.url, "bob", bertsId)
    const suspended = { outcome: "dead", reason: "suspended" }
    await until(
      () => test(bertsId, "bob"),
      ({ body }) => JSON.stringify(body.data) === JSON.stringify(suspended)
    )
    const began = performance.now()
    const late = await test(ids[3]!)
    assert.equal(late.status, 202)
    assert.isAbove(performance.now() - began, 9_500)
  })
})
