// An operator looks at a person, and gives back a browser that a push service called gone, or that
// strikes suspended. LOG and the log say who did it.
import { assert, it } from "vitest"
import { call, finished, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { startService } from "../support/service.ts"
import { storedText } from "../support/stored-text.ts"
import { suspend } from "../support/suspend.ts"
import { idOf, tokenOf } from "../support/users.ts"

it("an operator gives a person back a browser", { timeout: 60_000 }, async () => {
  await using nats = await startNats()
  await using push = await startPushService()
  await using service = await startService({
    natsUrl: nats.url,
    env: {
      BELLCAST_OPERATOR_PRINCIPALS: idOf("operator"),
      BELLCAST_LOG_REQUESTS: "false",
      // Does not count what an operator gives back.
      BELLCAST_MEMBERS_PER_CALLER_PER_HOUR_MAX: "1"
    }
  })
  const { url } = service
  const agent = push.subscribe({ script: ["410", "201"] })
  const data = { ...agent.subscription, label: "Phone" }
  const { id } = (await call(url, "POST", "/subscriptions", "anna", { data })).body.data
  assert.equal((await call(url, "PUT", "/channels/news/registration", "anna")).status, 202)
  const person = `/users/${encodeURIComponent(idOf("anna"))}`
  const devices = async () => (await call(url, "GET", person, "operator")).body.data.devices
  const [before] = await devices()
  assert.deepInclude(before, { id, host: "127.0.0.1", push_service: "other", label: "Phone" })

  const counts = await finished(url, "news", await publish(url, "news", { n: 1 }))
  assert.deepInclude(counts, { accepted: 1, gone: 1 })
  await until(devices, (list) => list.length === 0)
  const restore = () => call(url, "POST", `${person}/subscriptions/${id}/restore`, "operator")
  const restored = await restore()
  assert.equal(restored.status, 200, JSON.stringify(restored.body))
  assert.deepInclude(restored.body.data, { id, label: "Phone" })
  assert.deepEqual(await devices(), [restored.body.data])
  const again = await finished(url, "news", await publish(url, "news", { n: 2 }))
  assert.deepInclude(again, { accepted: 1, delivered: 1 })
  // A second time changes nothing.
  assert.deepEqual((await restore()).body, restored.body)
  const puts = (await storedText(nats.url)).match(/bellcast\.cmd\.subscription\..*/g) ?? []
  assert.lengthOf(
    puts.filter((line) => line.includes('"endpoint"')),
    2
  )
  const text = await storedText(nats.url)
  assert.lengthOf(text.match(new RegExp(`Bellcast-By: ${idOf("operator")}`, "g")) ?? [], 1)

  await suspend(nats.url, "anna", id)
  const suspended = await until(devices, ([device]) => device.suspended !== undefined)
  assert.equal(suspended[0].suspended.reason, "endpoint-not-allowed")
  assert.notProperty((await restore()).body.data, "suspended")
  assert.notProperty((await devices())[0], "suspended")

  const verb = await runCli(["audit", "--user", tokenOf("anna"), "--json", "--nats", nats.url])
  const changes = verb.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
    .flatMap(({ at, change, ...rest }) => (change === undefined ? [] : [{ change, ...rest }]))
  const by = { by: idOf("operator"), subscription: id }
  assert.deepEqual(changes, [
    { change: "restored", ...by },
    { change: "suspension ended", ...by }
  ])

  const lines = async () => service.output().match(/.*"person":.*/g) ?? []
  assert.equal((await call(url, "DELETE", `/subscriptions/${id}`, "anna")).status, 200)
  assert.equal((await restore()).status, 404)
  const looked = await until(lines, (found) => found.some((line) => line.includes('"code":404')))
  for (const line of looked) {
    assert.include(line, `"person":"${tokenOf("anna")}"`)
    assert.include(line, `"uid":"${idOf("operator")}"`)
  }
  const other = { data: push.subscribe({ script: ["410"] }).subscription }
  const stored = (await call(url, "POST", "/subscriptions", "ben", other)).body.data
  assert.equal((await call(url, "PUT", "/channels/other/registration", "ben")).status, 202)
  await finished(url, "other", await publish(url, "other", { n: 3 }))
  const ben = `/users/${encodeURIComponent(idOf("ben"))}`
  await until(
    () => call(url, "GET", ben, "operator"),
    ({ body }) => body.data.devices.length === 0
  )
  const given = await call(url, "POST", `${ben}/subscriptions/${stored.id}/restore`, "operator")
  assert.equal(given.status, 200)
})
