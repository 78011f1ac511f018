// A publisher stores a bounded number of bytes in an hour, by whatever requests.
import { assert, it } from "vitest"
import { call } from "../support/client.ts"
import { connectAdmin, readsOf } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { inHours } from "../support/times.ts"
import { useService } from "../support/use-service.ts"

/** Three broadcasts with this payload, and no fourth. */
const bytesMax = 16_000
const data = { text: "x".repeat(3_500) }
const at = inHours(1)

const shared = useService({
  env: {
    BELLCAST_BROADCAST_BYTES_PER_PUBLISHER_PER_HOUR_MAX: String(bytesMax),
    BELLCAST_CHANGES_PER_ADDRESS_PER_HOUR_MAX: "8"
  }
})

const post = (user: string, body: object, path = "/channels/news", key?: string) =>
  call(
    shared.service.url,
    "POST",
    path,
    user,
    body,
    key === undefined ? {} : { "idempotency-key": key }
  )

it("refuses a publisher whose broadcasts take too many bytes, and no other", async () => {
  const first = await post("ann", { data, at }, undefined, "first")
  const second = await post("ann", { data, to: { channels: ["news", "sport"] } }, "/broadcasts")
  const third = await post("ann", { data: { n: 1 }, data_by_locale: { de: data } })
  assert.deepEqual([first.status, second.status, third.status], [202, 202, 202])
  const refused = await post("ann", { data })
  assert.deepInclude(refused.body, { code: 429, error_code: "too-many-broadcast-bytes" })
  const seconds = Number(refused.headers.get("retry-after"))
  assert.isAtLeast(seconds, 1)
  assert.isBelow(seconds, 3_600)
  // What was stored may be asked for again: its publisher may not have received the response.
  await using admin = await connectAdmin(shared.nats.url)
  const reads = await readsOf(admin, async () => {
    const again = await post("ann", { data, at }, undefined, "first")
    assert.deepEqual([again.status, again.body.id], [202, first.body.id])
    assert.equal((await post("ann", { data, at }, undefined, "another")).status, 429)
  })
  // Neither reads the broadcasts of the last hour for one with its key: there may be many.
  assert.isEmpty(reads.filter((read) => read.includes("bellcast.cmd.broadcast.")))
  const path = `/broadcasts/${first.body.id}`
  const patch = (data: object) => call(shared.service.url, "PATCH", path, "ann", { data })
  assert.equal((await patch({ data })).body.error_code, "too-many-broadcast-bytes")
  // Stopping a broadcast is never refused.
  assert.equal((await patch({ state: "cancelled" })).status, 200)
  assert.equal((await post("bob", { data })).status, 202)
  assert.equal((await post("ann", { data, dry_run: true })).status, 200)
})

it("counts nothing that is not stored", async () => {
  const { nats, service } = shared
  const key = "only once"
  const first = await post("eve", { data, at }, undefined, key)
  for (let i = 0; i < 4; i++) {
    assert.equal((await post("eve", { data, at }, undefined, key)).body.id, first.body.id)
    assert.equal((await post("eve", { data: { i }, at }, undefined, key)).status, 400)
  }
  const patch = { data: { data: { text: "x".repeat(4_000) } } }
  for (let i = 0; i < 4; i++)
    assert.equal(
      (await call(service.url, "PATCH", `/broadcasts/${first.body.id}`, "eve", patch)).status,
      413
    )
  await using admin = await connectAdmin(nats.url)
  const { config } = await admin.jsm.streams.info("BELLCAST_LOG")
  // NATS refuses each broadcast, and the gateway does not know why.
  await admin.jsm.streams.update("BELLCAST_LOG", { max_msg_size: 1_000 })
  for (let i = 0; i < 4; i++) assert.equal((await post("eve", { data })).status, 503)
  await admin.jsm.streams.update("BELLCAST_LOG", { max_msg_size: config.max_msg_size })
  const others = [
    await post("eve", { data }),
    await post("eve", { data }),
    await post("eve", { data })
  ]
  assert.deepEqual(
    others.map(({ status }) => status),
    [202, 202, 429]
  )
})

it("counts of an address what a test of a subscription stores, with its payload", async () => {
  await using push = await startPushService()
  const { url } = shared.service
  const stored = await call(url, "POST", "/subscriptions", "kim", {
    data: push.subscribe().subscription
  })
  const path = `/subscriptions/${stored.body.data.id}/test`
  // The subscription counts as 1.6 of 8 changes, this test as 6.1, and one without payload as 2.2.
  assert.equal((await call(url, "POST", path, "kim", { data })).status, 200)
  const refused = await call(url, "POST", path, "kim")
  assert.deepInclude(refused.body, { code: 429, error_code: "too-many-changes" })
})
