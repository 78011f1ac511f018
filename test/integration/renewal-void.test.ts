// A browser that its user or the site logged out does not come back by itself: a removal voids the
// secrets of subscriptions that a push service had ended before.
import { createHash } from "node:crypto"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { auditsOf } from "../support/audit.ts"
import { call, finished, publish } from "../support/client.ts"
import { end } from "../support/end.ts"
import { administer, rebuildAt } from "../support/history.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { type Service, startService } from "../support/service.ts"
import { idOf, tokenOf } from "../support/users.ts"

let nats: TestNats
let push: PushService
let service: Service

beforeAll(async () => {
  nats = await startNats({ syncAlways: false })
  push = await startPushService()
  service = await startService({
    natsUrl: nats.url,
    env: {
      BELLCAST_USER_WRITE_PRINCIPALS: idOf("site"),
      BELLCAST_OPERATOR_PRINCIPALS: idOf("operator")
    }
  })
})
afterAll(async () => {
  for (const each of [service, push, nats]) await each?.[Symbol.asyncDispose]()
})

const send = (method: string, path: string, user?: string, body?: unknown) =>
  call(service.url, method, path, user, body)
const encoded = (user: string) => encodeURIComponent(idOf(user))
const personOf = (user: string) => `/users/${encoded(user)}`

/** A subscription of a user with a secret. */
const renewable = async (user: string, more = {}) => {
  const data = { ...push.subscribe().subscription, ...more }
  const prefer = { prefer: "renewal" }
  const stored = await call(service.url, "POST", "/subscriptions", user, { data }, prefer)
  assert.equal(stored.status, 201)
  return { data, id: stored.body.data.id as string, renewal: stored.body.renewal as string }
}
/** The same of one that a push service ended. */
const ended = async (user: string, more = {}) => {
  const given = await renewable(user, more)
  await end(nats.url, service.url, user, given.id)
  return given
}
const renew = (renewal: string) =>
  send("POST", "/subscriptions/replace", undefined, {
    renewal,
    data: push.subscribe().subscription
  })
/** The timestamp of a user's list, which every change that the user sees moves. */
const etagOf = async (user: string) =>
  (await send("HEAD", "/subscriptions", user)).headers.get("etag")

describe("the secret of an ended subscription", { timeout: 60_000 }, () => {
  it.each([
    { how: "the site's logout everywhere", user: "ann", path: `${personOf("ann")}/subscriptions` },
    { how: "the user's removal of all", user: "abe", path: "/subscriptions" },
    { how: "the removal of all but one", user: "amy", path: "/subscriptions?exclude_id=abc" },
    { how: "the end of the user", user: "ari", path: "/" }
  ])("is void after $how, which shows nothing of it", async ({ path, user }) => {
    const by = path.startsWith("/users/") ? "site" : user
    const [gone, other] = [await ended(user), await ended(user)]
    const before = await etagOf(user)
    const removed = await send("DELETE", path, by)
    if (path !== "/") {
      assert.deepEqual([removed.status, removed.body], [200, { data: [] }])
      assert.equal(removed.headers.get("total-records"), "0")
    }
    // The list of a user who is erased begins anew.
    assert.equal(await etagOf(user), path === "/" ? '"0"' : before)
    for (const { renewal } of [gone, other]) assert.equal((await renew(renewal)).status, 403)
    assert.deepEqual((await send("GET", "/subscriptions", user)).body.data, [])
    // Nor does an operator give such a browser back.
    const restored = `${personOf(user)}/subscriptions/${gone.id}/restore`
    assert.equal((await send("POST", restored, "operator")).status, 404)
  })

  it("is void after the removal of that one, which the user does not have any more", async () => {
    const [gone, other] = [await ended("bob"), await ended("bob")]
    assert.equal((await send("DELETE", `/subscriptions/${gone.id}`, "bob")).status, 404)
    assert.equal((await renew(gone.renewal)).status, 403)
    assert.equal((await renew(other.renewal)).status, 201)
  })

  it("is void once the last page is removed", async () => {
    const gone = await ended("cid")
    for (let i = 0; i < 2; i++) await renewable("cid")
    const first = await send("DELETE", "/subscriptions?_limit=1", "cid")
    const next = new URL(first.headers.get("next-page")!)
    const last = await send("DELETE", `/subscriptions${next.search}`, "cid")
    assert.equal(last.body.data.length, 1)
    assert.equal((await renew(gone.renewal)).status, 403)
  })

  it("holds after a removal that selects others, or one of another user", async () => {
    const gone = await ended("dan", { label: "Phone" })
    await renewable("dan", { label: "Desk" })
    for (const query of ["?label=Desk", `?_since=${Date.now() + 60_000}`, "?id=abc"])
      assert.equal((await send("DELETE", `/subscriptions${query}`, "dan")).status, 200)
    assert.equal((await send("DELETE", "/subscriptions", "eve")).status, 200)
    assert.equal((await send("DELETE", `/subscriptions/${gone.id}`, "eve")).status, 404)
    const renewed = await renew(gone.renewal)
    assert.equal(renewed.status, 201)
    assert.equal(renewed.body.data.label, "Phone")
  })

  it("holds after its user stored the browser again without asking for another", async () => {
    for (const [user, method] of [
      ["gil", "PUT"],
      ["gus", "POST"]
    ] as const) {
      const { data, id, renewal } = await ended(user)
      const path = method === "PUT" ? `/subscriptions/${id}` : "/subscriptions"
      assert.equal((await send(method, path, user, { data })).status, 201)
      assert.equal((await renew(renewal)).status, 201)
    }
  })

  it("holds after an operator gave the browser back, as its user stored it last", async () => {
    const { data, id, renewal } = await renewable("fay", { label: "Phone" })
    const stored = { data: { ...data, label: "Old phone" } }
    assert.equal((await send("PUT", `/subscriptions/${id}`, "fay", stored)).status, 200)
    await end(nats.url, service.url, "fay", id)
    const path = `${personOf("fay")}/subscriptions/${id}/restore`
    assert.equal((await send("POST", path, "operator")).status, 200)
    const renewed = await renew(renewal)
    assert.deepEqual([renewed.status, renewed.body.data?.label], [201, "Old phone"])
  })
})

describe("a renewal of an ended subscription", { timeout: 60_000 }, () => {
  it("keeps the attributes that its user stored last", async () => {
    const { data, id, renewal } = await renewable("gil", { label: "Phone", locale: "de" })
    const stored = { data: { ...data, label: "Old phone", visits: 2 } }
    assert.equal((await send("PUT", `/subscriptions/${id}`, "gil", stored)).status, 200)
    await end(nats.url, service.url, "gil", id)
    const renewed = await renew(renewal)
    assert.equal(renewed.status, 201)
    const { label, locale, visits } = renewed.body.data
    assert.deepEqual([label, locale, visits], ["Old phone", "de", 2])
    const { stdout } = await runCli(["audit", "--user", tokenOf("gil"), "--nats", nats.url])
    assert.match(
      stdout,
      new RegExp(`^renewed +20\\S+Z +- +${renewed.body.data.id.slice(0, 12)}`, "m")
    )
  })
})

// The last one: it stops the service.
it("no response and no audit shows the SHA-256 of a secret, and a rebuild keeps it", {
  timeout: 60_000
}, async () => {
  const [live, gone] = [await renewable("hal"), await ended("hal")]
  const hashes = [live, gone].map(({ renewal }) =>
    createHash("sha256").update(renewal).digest("base64url")
  )
  assert.equal((await send("PUT", "/channels/hash/registration", "hal")).status, 202)
  const broadcast = await publish(service.url, "hash", { n: 1 })
  await finished(service.url, "hash", broadcast)
  const shown = [
    await send("GET", "/subscriptions?_since=0", "hal"),
    await send("GET", `/subscriptions/${live.id}`, "hal"),
    await send("PUT", `/subscriptions/${live.id}`, "hal", { data: live.data }),
    await send("GET", personOf("hal"), "operator"),
    await send("GET", `/broadcasts/${broadcast}/pushes?user=${encoded("hal")}`, "operator"),
    await send("DELETE", `/subscriptions/${live.id}`, "hal")
  ].map(({ body, status }) => {
    assert.equal(status, 200)
    return JSON.stringify(body)
  })
  const verbs = [
    ["audit", broadcast],
    ["audit", "--user", tokenOf("hal")],
    ["user", "show", tokenOf("hal")]
  ].map((args) => runCli([...args, "--nats", nats.url]))
  for (const { code, stdout } of await Promise.all(verbs)) {
    assert.equal(code, 0)
    shown.push(stdout)
  }
  shown.push(JSON.stringify(await auditsOf(nats.url, [broadcast])))
  shown.push(service.output())
  for (const text of shown) for (const hash of hashes) assert.notInclude(text, hash)

  await service.stop()
  await using admin = await administer(nats.url)
  // A rebuild leaves out what is empty after an erasure.
  const lists = async () =>
    Object.entries(await admin.entries()).filter(
      ([key, text]) =>
        key.includes("_subscriptions.") && !/"owners":\{\}|"seq":0,"lastModified":0/.test(text)
    )
  const before = await lists()
  // The tombstone of the one that ended, unspent.
  assert.include(JSON.stringify(before), hashes[1]!)
  assert.notInclude(JSON.stringify(before), hashes[0]!)
  await rebuildAt(nats.url)
  assert.deepEqual(await lists(), before)
})
