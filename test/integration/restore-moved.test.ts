// A restore and a renewal take no browser from another user who has stored it meanwhile, not even
// after they have read its owner.
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { endpointHash } from "#domain/subscription/owners.ts"
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

it.each<
  readonly [what: string, refused: unknown, restore: (id: string, from: string) => Promise<unknown>]
>([
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
    "0 subscriptions of 1 user were restored\n" + "1 was not: other users have stored them since\n",
    async (_, from) => {
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
    const from = new Date(Date.now() - 1).toISOString()
    await end(nats.url, gateway.url, user, body.data.id)
    const before = await lastOf(user)
    // The restore cannot know that the other user comes first in LOG.
    projection.process.kill("SIGSTOP")
    const stored = call(gateway.url, "POST", "/subscriptions", later, { data })
    await until(
      () => lastOf(later),
      (seq) => seq > 0
    )
    const restored = restore(body.data.id, from)
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

describe("a browser that another user stored after its end", { timeout: 60_000 }, () => {
  const restoreAt = async (user: string, id: string) => {
    const path = `/users/${encodeURIComponent(idOf(user))}/subscriptions/${id}/restore`
    return (await call(gateway.url, "POST", path, "operator")).status
  }
  const restoreSince = async (from: string, ...more: ReadonlyArray<string>) => {
    const args = ["restore", "--from", from, "--nats", nats.url, ...more]
    return (await runCli(args, secretEnvironment)).stdout
  }

  it.each([
    { how: "removed it", later: "removes", restored: 0 },
    { how: "lost it, too", later: "loses", restored: 1 }
  ])("does not come back to the earlier user once the later one $how", async (given) => {
    const { later, restored } = given
    const earlier = `${later} later`
    const { subscription: data } = push.subscribe()
    const prefer = { prefer: "renewal" }
    const stored = await call(gateway.url, "POST", "/subscriptions", earlier, { data }, prefer)
    const { id } = stored.body.data
    const { renewal } = stored.body
    const from = new Date(Date.now() - 1).toISOString()
    await end(nats.url, gateway.url, earlier, id)
    assert.equal((await call(gateway.url, "POST", "/subscriptions", later, { data })).status, 201)
    // The secret does not give the next subscription of the later user's browser to the earlier.
    const next = { renewal, data: push.subscribe().subscription }
    const renewed = await call(gateway.url, "POST", "/subscriptions/replace", undefined, next)
    assert.equal(renewed.status, 403)
    if (restored === 1) await end(nats.url, gateway.url, later, id)
    else
      assert.equal((await call(gateway.url, "DELETE", `/subscriptions/${id}`, later)).status, 200)
    assert.equal(await restoreAt(earlier, id), 404)
    const of = restored === 1 ? "1 subscription of 2 users" : "0 subscriptions of 1 user"
    const causes = restored === 1 ? ": 1 gone" : ""
    const were = restored === 1 ? "was" : "were"
    assert.equal(
      await restoreSince(from, "--dry-run"),
      `${of} would be restored${causes}\n1 would not be: other users have stored them since\n`
    )
    assert.equal(
      await restoreSince(from),
      `${of} ${were} restored${causes}\n1 was not: other users have stored them since\n`
    )
    assert.deepEqual(await endpointsOf(earlier), [])
    assert.deepEqual(await endpointsOf(later), restored ? [data.endpoint] : [])
  })

  it("comes back to the earlier user who stored it again since", async () => {
    const { subscription: data } = push.subscribe()
    const users = ["anna", "bert", "anna"]
    for (const user of users) {
      const stored = await call(gateway.url, "POST", "/subscriptions", user, { data })
      assert.equal(stored.status, 201)
      await end(nats.url, gateway.url, user, stored.body.data.id)
    }
    const id = endpointHash(data.endpoint)
    assert.equal(await restoreAt("bert", id), 404)
    assert.equal(await restoreAt("anna", id), 200)
    assert.deepEqual(await endpointsOf("anna"), [data.endpoint])
  })
})

describe("a renewal behind what another user stored", { timeout: 60_000 }, () => {
  const renewable = async (user: string) => {
    const { subscription: data } = push.subscribe()
    const prefer = { prefer: "renewal" }
    const { body } = await call(gateway.url, "POST", "/subscriptions", user, { data }, prefer)
    return { data, id: body.data.id as string, renewal: body.renewal as string }
  }
  /** Renews for `user`. The gateway cannot know that `first` stores `of` earlier in LOG. */
  const renewBehind = async (
    first: string,
    of: object,
    user: string,
    body: { readonly renewal: string; readonly data: object }
  ) => {
    const before = await lastOf(user)
    projection.process.kill("SIGSTOP")
    const stored = call(gateway.url, "POST", "/subscriptions", first, { data: of })
    await until(
      () => lastOf(first),
      (seq) => seq > 0
    )
    const renewed = call(gateway.url, "POST", "/subscriptions/replace", undefined, body)
    await until(
      () => lastOf(user),
      (seq) => seq > before
    )
    projection.process.kill("SIGCONT")
    assert.equal((await stored).status, 201)
    return (await renewed).body
  }

  it.each(["of a present", "of an ended"])("takes nothing from its user, %s one", async (which) => {
    const [first, user] = ["first", "renews"].map((name) => `${name} ${which}`)
    const { data: own, id, renewal } = await renewable(user!)
    const isEnded = which === "of an ended"
    if (isEnded) await end(nats.url, gateway.url, user!, id)
    const { subscription: data } = push.subscribe()
    const answer = await renewBehind(first!, data, user!, { renewal, data })
    assert.deepInclude(answer, { code: 409, errno: 123 })
    assert.deepEqual(await endpointsOf(first!), [data.endpoint])
    // The renewal was rejected: the former subscription is there, or comes back.
    if (isEnded) {
      const path = `/users/${encodeURIComponent(idOf(user!))}/subscriptions/${id}/restore`
      assert.equal((await call(gateway.url, "POST", path, "operator")).status, 200)
    }
    assert.deepEqual(await endpointsOf(user!), [own.endpoint])
  })

  it.each(["a present", "an ended"])("does not continue %s one, which moved", async (which) => {
    const [first, user] = ["takes", "continues"].map((name) => `${name} ${which}`)
    const { data, id, renewal } = await renewable(user!)
    if (which === "an ended") await end(nats.url, gateway.url, user!, id)
    const next = { renewal, data: push.subscribe().subscription }
    const answer = await renewBehind(first!, data, user!, next)
    assert.deepInclude(answer, { code: 409, errno: 123 })
    assert.deepEqual(await endpointsOf(first!), [data.endpoint])
    assert.deepEqual(await endpointsOf(user!), [])
    const again = await call(gateway.url, "POST", "/subscriptions/replace", undefined, next)
    assert.equal(again.status, 403)
  })
})
