// An operator finds out by requests why pushes were given up, and sends them again, once.
import { assert, it } from "vitest"
import { call, finished, finishedAt, join, publish } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { startService } from "../support/service.ts"
import { idOf } from "../support/users.ts"

it("an operator sends dead pushes again, and only once", { timeout: 60_000 }, async () => {
  await using nats = await startNats()
  await using push = await startPushService()
  await using service = await startService({
    natsUrl: nats.url,
    env: { BELLCAST_OPERATOR_PRINCIPALS: idOf("operator") }
  })
  const { url } = service
  const scripts = [["201"], ["400", "201"], ["413", "201"], ["400", "201"], ["410"]]
  const agents = scripts.map((script) => push.subscribe({ script }))
  await join(
    [url],
    "news",
    agents.map(({ subscription }) => subscription)
  )
  const id = await publish(url, "news", { n: 1 })
  const { accepted_at } = await finished(url, "news", id)

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

  const redrive = (body?: unknown, user = "operator") =>
    call(url, "POST", `/broadcasts/${id}/redrive`, user, body)
  assert.deepEqual((await redrive({ dry_run: true })).body, { data: { pushes: 3 } })
  assert.deepInclude((await redrive(undefined, "publisher")).body, { code: 403, errno: 121 })
  const both = await Promise.all([redrive(), redrive()])
  const made = both.filter(({ status }) => status === 202)
  assert.lengthOf(made, 1, JSON.stringify(both))
  const again = made[0]!.body.id
  assert.equal(made[0]!.headers.get("location"), `${url}/broadcasts/${again}`)
  const refused = (await redrive()).body
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
  const env = { BELLCAST_CHANNEL_WRITE_PRINCIPALS: `news=${idOf("publisher")}` }
  await using other = await startService({ natsUrl: nats.url, roles: "gateway", env })
  const seen = await call(other.url, "GET", `/broadcasts/${again}`, "operator")
  assert.deepInclude(seen.body, { code: 404, errno: 110 })

  const audited = await runCli(["audit", again, "--nats", nats.url])
  assert.include(audited.stdout, ` from redrive by ${idOf("operator")}\n`)
  const verb = await runCli(["redrive", id, "--nats", nats.url])
  assert.include(verb.stderr, `was sent again as ${again}`)
})
