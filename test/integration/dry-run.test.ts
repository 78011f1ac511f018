// A dry run of a large audience reads a part of it.
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { Buckets } from "#nats/kv/bucket.ts"
import { natsLayer } from "#nats/layer.ts"
import { keys } from "#streams/buckets.ts"
import { channelToken, isInShard } from "#streams/tokens.ts"
import { call } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"
import { tokenOf } from "../support/users.ts"

describe("a dry run", { timeout: 60_000 }, () => {
  it("reads a part of a large audience, and takes the rest to be alike", async () => {
    await using nats = await startNats({ syncAlways: false })
    await using push = await startPushService()
    await using service = await startService({ natsUrl: nats.url })
    const count = 300
    const subscriptions = Array.from({ length: 2 * count }, () => push.subscribe().subscription)
    const users = { browsersEach: 2, areBasic: true }
    await fillChannels(nats.url, [{ name: "news", subscriptions }], users)
    const dryRun = async () =>
      (await call(service.url, "POST", "/channels/news", "publisher", { dry_run: true })).body.data
    assert.deepEqual(await dryRun(), { people: count, browsers: 2 * count, estimated: false })

    // With 20,000 registrations in the bucket, a dry run reads a sixteenth of the users.
    await Effect.gen(function* () {
      const buckets = yield* Buckets
      const key = keys.channelRegistrations(channelToken("news"))
      const entry = (yield* buckets.get("channels", key))!
      const value = { ...entry.value, registrations: 20_000 }
      yield* buckets.put("channels", key, value, entry.revision)
    }).pipe(Effect.provide(natsLayer({ url: nats.url, name: "test" })), Effect.runPromise)
    const names = Array.from({ length: count }, (_, i) => tokenOf(`user${i}`))
    const read = names.filter((token) => isInShard(token, "0")).length
    const expected = { people: 16 * read, browsers: 32 * read, estimated: true }
    assert.deepEqual(await dryRun(), expected)
  })
})
