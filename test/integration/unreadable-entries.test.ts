// An entry that is no JSON, as only a client of NATS writes it: the shard of a list waits until
// that is mended, and nothing behind it does; a push goes on by another registration.
import { assert, it } from "vitest"
import { keys } from "#streams/buckets.ts"
import { channelToken, shardOf, type UserToken } from "#streams/tokens.ts"
import { shown } from "../support/broadcast-states.ts"
import { finishedAt, publishAt, until } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"
import { tokenOf } from "../support/users.ts"

const people = 1_200
/** 16 shards of 75: those of five places further have a job once one ends. */
const rate = 90

it("holds up its own shard of a broadcast with a rate, and none behind it", {
  timeout: 120_000
}, async () => {
  await using nats = await startNats({ syncAlways: false })
  await using push = await startPushService()
  const subscriptions = Array.from({ length: people }, () => push.subscribe().subscription)
  const tokens = subscriptions.map((_, i) => tokenOf(`user${i}`))
  await using service = await startService({ natsUrl: nats.url })
  await fillChannels(nats.url, [{ name: "news", subscriptions }], { areBasic: true })
  const ofShard = (user: UserToken) => shardOf(user, 1) === "0"
  const held = tokens.filter(ofShard)
  await using admin = await connectAdmin(nats.url)
  const entry = `$KV.bellcast_subscriptions.${held[0]!}`
  const stored = await admin.jsm.streams.getMessage("KV_bellcast_subscriptions", {
    last_by_subj: entry
  })
  await admin.nc.request(entry, "no JSON")
  const id = await publishAt(service.url, "/channels/news", { data: { n: 1 }, rate })
  const counts = await until(
    () => shown(service.url, id),
    ({ delivered }) => delivered === people - held.length,
    60_000
  )
  assert.deepInclude(counts, { state: "running" })
  await admin.nc.request(entry, stored!.data)
  const done = await finishedAt(service.url, `/broadcasts/${id}`, "publisher", 30_000)
  assert.deepInclude(done, { accepted: people, delivered: people })
  assert.lengthOf(
    push.agents.flatMap(({ attempts }) => attempts),
    people,
    "each was sent once"
  )
})

it("lets a push be tried again for the channel that can be read", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats({ syncAlways: false })
  await using push = await startPushService()
  const agent = push.subscribe({ script: ["503 retry-after 3", "201"] })
  await using service = await startService({ natsUrl: nats.url })
  const subscriptions = [agent.subscription]
  const channels = ["one", "two"]
  const both = channels.map((name) => ({ name, subscriptions }))
  await fillChannels(nats.url, both, { areBasic: true })
  const body = { data: { n: 1 }, to: { channels } }
  const id = await publishAt(service.url, "/broadcasts", body)
  await until(
    () => shown(service.url, id),
    ({ retrying }) => retrying === 1
  )
  await using admin = await connectAdmin(nats.url)
  const place = keys.registration(channelToken("one"), tokenOf("user0"))
  await admin.nc.request(`$KV.bellcast_registrations.${place}`, "no JSON")
  const done = await finishedAt(service.url, `/broadcasts/${id}`, "publisher", 30_000)
  assert.deepInclude(done, { accepted: 1, delivered: 1 })
})
