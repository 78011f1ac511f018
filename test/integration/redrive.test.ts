// A redriven broadcast reaches the users that it did not reach before, nobody else, and nobody
// twice: by a verb, or by a request of an operator, who sees by requests why pushes were given up.
import { jetstream } from "@nats-io/jetstream"
import { connect, headers } from "@nats-io/transport-node"
import { assert, describe, it } from "vitest"
import { call, finished, finishedAt, join, publish, until } from "../support/client.ts"
import { startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { startService } from "../support/service.ts"
import { useService } from "../support/use-service.ts"
import { idOf } from "../support/users.ts"

const redrive = (natsUrl: string, broadcast: string, ...args: ReadonlyArray<string>) =>
  runCli(["redrive", broadcast, ...args, "--nats", natsUrl])

const idIn = (text: string) => / as broadcast (\d+)/.exec(text)?.[1] ?? assert.fail(text)

const shared = useService({ env: { BELLCAST_OPERATOR_PRINCIPALS: idOf("operator") } })

// The first: it wants no other dead pushes.
it("an operator sends dead pushes again, and only once", { timeout: 60_000 }, async () => {
  const { nats, service } = shared
  await using push = await startPushService()
  const { url } = service
  const scripts = [["201"], ["400", "201"], ["413", "201"], ["400", "201"], ["410"]]
  const agents = scripts.map((script) => push.subscribe({ script }))
  const subscriptions = agents.map(({ subscription }) => subscription)
  await join([url], "operated", subscriptions, 24, "operated")
  const id = await publish(url, "operated", { n: 1 })
  const { accepted_at } = await finished(url, "operated", id)

  const dead = (query = "") => call(url, "GET", `/dead${query}`, "operator")
  const { data } = (await dead()).body
  const causes = data.map(({ first_at, last_at, ...cause }: Record<string, number>) => {
    assert.isAtLeast(last_at!, first_at!)
    return cause
  })
  const of = { push_service: "other", broadcasts: 1, last_broadcast: id }
  assert.deepEqual(causes, [
    { ...of, reason: "refused", status: 400, pushes: 2 },
    { ...of, reason: "too-large", status: 413, pushes: 1 }
  ])
  assert.deepEqual((await dead(`?broadcast=${id}`)).body.data, data)
  assert.deepEqual((await dead(`?since=${new Date(accepted_at).toISOString()}`)).body.data, data)
  assert.deepEqual((await dead("?since=2999-01-01T00:00:00Z")).body.data, [])
  assert.deepEqual((await dead("?broadcast=1")).body.data, [])

  const request = (body?: unknown, user = "operator") =>
    call(url, "POST", `/broadcasts/${id}/redrive`, user, body)
  assert.deepEqual((await request({ dry_run: true })).body, { data: { pushes: 3 } })
  assert.deepInclude((await request(undefined, "publisher")).body, { code: 403, errno: 121 })
  const both = await Promise.all([request(), request()])
  const made = both.filter(({ status }) => status === 202)
  assert.lengthOf(made, 1, JSON.stringify(both))
  const again = made[0]!.body.id
  assert.equal(made[0]!.headers.get("location"), `${url}/broadcasts/${again}`)
  const refused = (await request()).body
  assert.deepInclude(refused, { code: 409, errno: 124 })
  assert.deepEqual(refused.details, { state: "finished", reason: "redriven", broadcast: again })
  const counts = await finishedAt(url, `/broadcasts/${again}`, "operator")
  assert.deepInclude(counts, { accepted: 3, delivered: 3 })
  assert.deepInclude(counts, { publisher: idOf("operator"), redrives: id })
  const listed = `/broadcasts?publisher=${encodeURIComponent(idOf("operator"))}`
  const { body: own } = await call(url, "GET", listed, "operator")
  assert.deepEqual(
    own.data.map((each: { id: string }) => each.id),
    [again]
  )
  const line = `"broadcast":${again},"publisher":"${idOf("operator")}"`
  assert.include(service.output(), line)
  const received = agents.map((agent) => agent.received.length)
  assert.deepEqual(received, [1, 1, 1, 1, 0])

  // The operator has lost the right, and has none to publish.
  const env = { BELLCAST_CHANNEL_WRITE_PRINCIPALS: `operated=${idOf("publisher")}` }
  await using other = await startService({ natsUrl: nats.url, roles: "gateway", env })
  const seen = await call(other.url, "GET", `/broadcasts/${again}`, "operator")
  assert.deepInclude(seen.body, { code: 404, errno: 110 })

  const audited = await runCli(["audit", again, "--nats", nats.url])
  assert.include(audited.stdout, ` from redrive by ${idOf("operator")}\n`)
  const verb = await runCli(["redrive", id, "--nats", nats.url])
  assert.include(verb.stderr, `was sent again as ${again}`)
})

describe("a broadcast that did not reach everybody", { timeout: 60_000 }, () => {
  it("is sent again to exactly those, with all it said, and only once", async () => {
    const { nats, service } = shared
    await using push = await startPushService()
    const scripts = [
      ["201"],
      ["400", "201"],
      ["400"],
      ["503 retry-after 60", "201"],
      ["400", "201"],
      ["410"]
    ]
    const agents = scripts.map((script) => push.subscribe({ script }))
    const received = () => agents.map((agent) => agent.received.map(({ text }) => text))
    await join(
      [service.url],
      "news",
      agents.map(({ subscription }) => subscription)
    )
    // Too short a life for the 503's second try.
    const first = await publish(
      service.url,
      "news",
      { n: 1 },
      { TTL: "10", Urgency: "high", Topic: "score" }
    )
    const before = { accepted: 6, delivered: 1, dead: 3, expired: 1, gone: 1 }
    assert.deepInclude(await finished(service.url, "news", first), before)
    assert.equal(
      (await call(service.url, "DELETE", "/channels/news/registration", "user4")).status,
      202
    )

    assert.deepInclude(await redrive(nats.url, first, "--dry-run"), {
      code: 0,
      stdout: `4 pushes of broadcast ${first} would be sent again\n`
    })
    const { code, stderr, stdout } = await redrive(nats.url, first)
    assert.equal(code, 0, stderr)
    const second = idIn(stdout)
    assert.deepInclude(await finished(service.url, "news", second), {
      accepted: 3,
      delivered: 2,
      dead: 1,
      expired: 0,
      gone: 0
    })
    const text = '{"n":1}'
    assert.deepEqual(received(), [[text], [text], [], [text], [], []])
    const headersOf = (i: number) => {
      const { ttl, topic, urgency } = agents[i]!.received[0]!.headers
      return { ttl, topic, urgency }
    }
    assert.deepInclude(headersOf(1), { topic: "score", urgency: "high" })
    assert.isAtMost(Number(headersOf(1).ttl), 10)
    assert.deepInclude(await finished(service.url, "news", first), before)

    assert.deepInclude(await redrive(nats.url, first), {
      code: 1,
      stdout: "",
      stderr:
        `bellcast: broadcast ${first} was sent again as ${second}: ` +
        "redrive that one for those who are left\n"
    })
    const third = idIn((await redrive(nats.url, second)).stdout)
    assert.deepInclude(await finished(service.url, "news", third), {
      accepted: 1,
      delivered: 0,
      dead: 1
    })
  })

  it("is refused for a broadcast that is under way, reached all, or was never sent", async () => {
    const { nats, service } = shared
    await using push = await startPushService()
    const agent = push.subscribe({ script: ["201", "503 retry-after 3000"] })
    await join([service.url], "refused", [agent.subscription], 1, "refused")
    const all = await publish(service.url, "refused", { n: 1 })
    await finished(service.url, "refused", all)
    assert.deepInclude(await redrive(nats.url, all), {
      code: 0,
      stdout: `broadcast ${all} left nobody to send to again\n`
    })

    const slow = await publish(service.url, "refused", { n: 2 })
    await until(
      () => call(service.url, "GET", `/channels/refused/broadcasts/${slow}`, "publisher"),
      ({ body }) => body.data.retrying === 1
    )
    const refused = await redrive(nats.url, slow)
    assert.deepInclude(refused, {
      code: 1,
      stderr: `bellcast: broadcast ${slow} is not finished: some of its pushes may still arrive\n`
    })

    const nc = await connect({ servers: nats.url })
    const wrong = headers()
    wrong.set("Bellcast-Redrives", "0")
    const { seq } = await jetstream(nc).publish("bellcast.cmd.broadcast.billing.refused", "{}", {
      headers: wrong
    })
    await nc.close()
    const rejected = await until(
      () => call(service.url, "GET", `/channels/refused/broadcasts/${seq}`, "publisher"),
      ({ body }) => typeof body.data?.rejected === "string"
    )
    assert.equal(rejected.body.data.rejected, "Bellcast-Redrives must be the id of a broadcast")
    assert.match((await redrive(nats.url, String(seq))).stderr, /was rejected/)
    assert.lengthOf(agent.received, 1)
  })
})
