// Requests of operators on NATS: what the same requests over HTTP respond, for the principals that
// the settings name, and a record of who looked at whom.
import { connect, headers, type NatsConnection } from "@nats-io/transport-node"
import { afterAll, assert, beforeAll, it } from "vitest"
import { call, finished, join, publish, until } from "../support/client.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { type Service, startService } from "../support/service.ts"
import { idOf, tokenOf } from "../support/users.ts"

let nats: TestNats
let push: PushService
let service: Service
let nc: NatsConnection
let broadcast: string

const user = idOf("user0")

beforeAll(async () => {
  nats = await startNats()
  push = await startPushService()
  const env = {
    BELLCAST_CHANNEL_WRITE_PRINCIPALS: `${idOf("publisher")} news=nats:shop`,
    BELLCAST_OPERATOR_PRINCIPALS: `nats:support ${idOf("operator")}`,
    BELLCAST_LOG_REQUESTS: "false"
  }
  service = await startService({ natsUrl: nats.url, env })
  nc = await connect({ servers: nats.url })
  const script = ["400", "201"]
  await join([service.url], "news", [push.subscribe({ script }).subscription])
  broadcast = await publish(service.url, "news", { n: 1 })
  await finished(service.url, "news", broadcast)
})
afterAll(async () => {
  await nc?.close()
  for (const each of [service, push, nats]) await each?.[Symbol.asyncDispose]()
})

const request = async (operation: string, body: unknown, source = "support") => {
  const options = { timeout: 15_000, headers: headers() }
  const subject = `bellcast.api.${source}.${operation}`
  const msg = await nc.request(subject, JSON.stringify(body), options)
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape
  return { header: (name: string) => msg.headers?.get(name), body: JSON.parse(msg.string()) as any }
}

it("responds to an operator as over HTTP, and to nobody else", async () => {
  const all: ReadonlyArray<readonly [operation: string, body: object, path: string]> = [
    ["broadcasts", { state: "finished" }, "/broadcasts?state=finished"],
    ["pushes", { broadcast, outcome: "dead" }, `/broadcasts/${broadcast}/pushes?outcome=dead`],
    ["timeline", { broadcast }, `/broadcasts/${broadcast}/timeline`],
    ["pushes", { broadcast, user }, `/broadcasts/${broadcast}/pushes?user=${user}`],
    ["dead", { broadcast }, `/dead?broadcast=${broadcast}`],
    ["user", { user }, `/users/${encodeURIComponent(user)}`]
  ]
  for (const [operation, body, path] of all) {
    const expected = (await call(service.url, "GET", path, "operator")).body
    assert.isNotEmpty(expected.data, operation)
    assert.deepEqual((await request(operation, body)).body, expected, operation)
  }
  for (const [operation, body] of [
    ["dead", {}],
    ["user", { user }],
    ["redrive", { broadcast }],
    ["restore", { user, subscription: "x" }]
  ] as const)
    assert.equal((await request(operation, body, "shop")).body.code, 403, operation)
  const looked = new RegExp(`"uid":"nats:support".*"person":"${tokenOf("user0")}"`)
  await until(
    async () => service.output(),
    (output) => looked.test(output)
  )
})

it("sends a broadcast again, and restores", async () => {
  const dry = { broadcast, dry_run: true }
  assert.deepEqual((await request("redrive", dry)).body, { data: { pushes: 1 } })
  const again = (await request("redrive", { broadcast })).header("Bellcast-Broadcast")
  const { body } = await until(
    () => request("broadcast", { broadcast: again }),
    ({ body }) => body.data.finished
  )
  assert.deepInclude(body.data, {
    publisher: "nats:support",
    redrives: String(broadcast),
    delivered: 1
  })
  const { body: twice } = await request("redrive", { broadcast })
  assert.deepInclude(twice, { code: 409, errno: 124 })
  const { id } = (await request("user", { user })).body.data.devices[0]
  const restored = (await request("restore", { user, subscription: id })).body.data
  assert.deepInclude(restored, { id })
  const { body: required } = await request("restore", { user })
  assert.deepInclude(required, { code: 400, message: "subscription in body: Required" })
})

it("publishes on a channel for a source that may", async () => {
  const sent = { channel: "news", data: { n: 2 } }
  const { body, header } = await request("publish-channel", sent, "shop")
  const id = header("Bellcast-Broadcast")!
  assert.deepEqual(body, { code: 202, message: "Accepted", id, warnings: [] })
  assert.deepInclude(await finished(service.url, "news", id), { delivered: 1 })
  const reach = { people: 1, browsers: 1, estimated: false }
  const dry = await request("publish-channel", { ...sent, dry_run: true }, "shop")
  assert.deepEqual(dry.body, { data: reach, warnings: [] })
  assert.equal((await request("publish-channel", { ...sent, channel: "x" }, "shop")).body.code, 403)
  const number = await request("publish-channel", { ...sent, channel: 7 }, "shop")
  assert.deepInclude(number.body, { code: 400, message: "channel in body: Must be a string" })
})

it("schedules, shows and cancels a broadcast for a source that may", async () => {
  const ofShop = async (operation: string, body: unknown) =>
    (await request(operation, body, "shop")).body
  const at = new Date(Date.now() + 3_600_000).toISOString()
  const to = { channels: ["news"] }
  const { id } = await ofShop("publish", { at, to })
  const one = { broadcast: id }
  assert.deepInclude((await ofShop("broadcast", one)).data, { state: "scheduled", at })
  assert.deepInclude(await ofShop("pause", one), { code: 409, errno: 124 })
  assert.deepInclude((await ofShop("cancel", one)).data, { state: "cancelled" })
  const refused = await ofShop("publish", { at: "tomorrow", to })
  assert.deepInclude(refused, { code: 400, errno: 109 })
})
