// Rights of tokens to send to channels and to users, one by one; and the part of a large audience
// that a dry run reads.
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
import { createToken } from "../support/run-cli.ts"
import { startService } from "../support/service.ts"
import { idOf, tokenOf } from "../support/users.ts"

describe("the rights of a token", { timeout: 60_000 }, () => {
  it("are needed for each channel, and for users, to send, see and cancel", async () => {
    await using nats = await startNats({ syncAlways: false })
    await using service = await startService({
      natsUrl: nats.url,
      roles: "gateway,projection",
      env: { BELLCAST_AUTH_POLICIES: "basicauth token" }
    })
    const { url } = service
    const make = async (name: string, ...args: ReadonlyArray<string>) => {
      const { token } = await createToken(nats.url, name, ...args)
      return { authorization: `Bearer ${token}` }
    }
    const tokens = [
      await make("channels", "--channel", "news*"),
      await make("users", "--users"),
      await make("both", "--users", "--channel", "news")
    ]
    const users = [idOf("anna")]
    const audiences: ReadonlyArray<readonly [to: object, allowed: ReadonlyArray<boolean>]> = [
      [{ channels: ["news"] }, [true, false, true]],
      [{ channels: ["news", "newsroom"] }, [true, false, false]],
      [{ channels: ["news", "other"] }, [false, false, false]],
      [{ users }, [false, true, true]],
      [{ channels: ["news"], users }, [false, false, true]],
      [{ channels: ["news"], except_users: users }, [false, false, true]]
    ]
    for (const [to, allowed] of audiences) {
      const located: Array<string> = []
      for (const [i, token] of tokens.entries()) {
        const about = `${JSON.stringify(to)} by ${i}`
        for (const dry_run of [true, false]) {
          const body = { data: { n: 1 }, to, dry_run }
          const sent = await call(url, "POST", "/broadcasts", undefined, body, token)
          const { headers, status } = sent
          assert.equal(status, allowed[i] ? (dry_run ? 200 : 202) : 403, about)
          const location = headers.get("location")
          if (location !== null) located.push(location.slice(url.length))
        }
      }
      // A broadcast is shown to those who might have sent it: here the same, or its publisher.
      for (const path of located)
        for (const [i, token] of tokens.entries()) {
          const { status } = await call(url, "GET", path, undefined, undefined, token)
          const about = `${path} ${JSON.stringify(to)} by ${i}`
          assert.equal(status, allowed[i] ? 200 : 404, about)
          const body = { data: { state: "cancelled" } }
          const patched = await call(url, "PATCH", path, undefined, body, token)
          assert.equal(patched.status, status, about)
        }
    }
  })
})

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
