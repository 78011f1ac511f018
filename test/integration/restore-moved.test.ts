// A restore and a renewal take no browser from another user who has stored it meanwhile, not even
// after they have read its owner.
import { afterAll, assert, beforeAll, it } from "vitest"
import { subjects } from "#streams/subjects.ts"
import { call, until } from "../support/client.ts"
import { end } from "../support/end.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { connectAdmin, type NatsAdmin } from "../support/nats-admin.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { type Service, secretEnvironment, startService } from "../support/service.ts"
import { idOf, tokenOf } from "../support/users.ts"

let nats: TestNats
let admin: NatsAdmin
let push: PushService
let gateway: Service
let projection: Service

beforeAll(async () => {
  nats = await startNats({ syncAlways: false })
  push = await startPushService()
  admin = await connectAdmin(nats.url)
  const env = { BELLCAST_OPERATOR_PRINCIPALS: idOf("operator") }
  projection = await startService({ natsUrl: nats.url, roles: "projection" })
  gateway = await startService({ natsUrl: nats.url, roles: "gateway", env })
})
afterAll(async () => {
  for (const each of [admin, gateway, projection, push, nats]) await each?.[Symbol.asyncDispose]()
})

/** Sequence of the last command of a user. */
const lastOf = async (user: string) => {
  const last = { last_by_subj: subjects.subscription(tokenOf(user)) }
  return (await admin.jsm.streams.getMessage("BELLCAST_LOG", last))?.seq ?? 0
}
const endpointsOf = async (user: string) => {
  const { body } = await call(gateway.url, "GET", "/subscriptions", user)
  return body.data.map(({ endpoint }: { readonly endpoint: string }) => endpoint)
}

it.each<readonly [what: string, refused: unknown, restore: (id: string) => Promise<unknown>]>([
  [
    "a request",
    404,
    async (id) => {
      const path = `/users/${encodeURIComponent(idOf("a request"))}/subscriptions/${id}/restore`
      return (await call(gateway.url, "POST", path, "operator")).status
    }
  ],
  [
    "a verb",
    "0 subscriptions of 1 users were restored\n" +
      "1 were not: other users have stored them since\n",
    async () => {
      const from = new Date(Date.now() - 600_000).toISOString()
      const args = ["restore", "--from", from, "--host", "127.0.0.1", "--nats", nats.url]
      return (await runCli(args, secretEnvironment)).stdout
    }
  ]
])(
  "%s takes nothing from a user who was first",
  { timeout: 60_000 },
  async (user, refused, restore) => {
    const { subscription: data } = push.subscribe()
    const later = `${user} later`
    const { body } = await call(gateway.url, "POST", "/subscriptions", user, { data })
    await end(nats.url, gateway.url, user, body.data.id)
    const before = await lastOf(user)
    // The restore cannot know that the other user comes first in LOG.
    projection.process.kill("SIGSTOP")
    const stored = call(gateway.url, "POST", "/subscriptions", later, { data })
    await until(
      () => lastOf(later),
      (seq) => seq > 0
    )
    const restored = restore(body.data.id)
    await until(
      () => lastOf(user),
      (seq) => seq > before
    )
    projection.process.kill("SIGCONT")
    assert.equal((await stored).status, 201)
    assert.deepEqual(await restored, refused)
    assert.deepEqual(await endpointsOf(later), [data.endpoint])
    assert.deepEqual(await endpointsOf(user), [])
  }
)

it("a renewal takes nothing from a user who was first", { timeout: 60_000 }, async () => {
  const [old, { subscription: data }] = [push.subscribe(), push.subscribe()]
  const own = { data: old.subscription }
  const prefer = { prefer: "renewal" }
  const { body } = await call(gateway.url, "POST", "/subscriptions", "renews", own, prefer)
  const before = await lastOf("renews")
  // The gateway cannot know that the other user comes first in LOG.
  projection.process.kill("SIGSTOP")
  const stored = call(gateway.url, "POST", "/subscriptions", "first", { data })
  await until(
    () => lastOf("first"),
    (seq) => seq > 0
  )
  const { renewal } = body
  const replaced = call(gateway.url, "POST", "/subscriptions/replace", undefined, { renewal, data })
  await until(
    () => lastOf("renews"),
    (seq) => seq > before
  )
  projection.process.kill("SIGCONT")
  assert.equal((await stored).status, 201)
  assert.deepInclude((await replaced).body, { code: 409, errno: 123 })
  assert.deepEqual(await endpointsOf("first"), [data.endpoint])
  assert.deepEqual(await endpointsOf("renews"), [old.subscription.endpoint])
})
