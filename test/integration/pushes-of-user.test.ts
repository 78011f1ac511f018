// The last pushes to a user among many broadcasts that could not go to the user: found by what LOG
// and WORK have, of which no process keeps an index.
import { Effect } from "effect"
import { assert, it } from "vitest"
import type { UnknownReason } from "#domain/reason.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import {
  type ChannelToken,
  channelsToken,
  channelToken,
  directToken,
  shardOf,
  type UserToken
} from "#streams/tokens.ts"
import { call, join } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { secretEnvironment, startService } from "../support/service.ts"
import { idOf, tokenOf } from "../support/users.ts"

const user = idOf("user0")
const token = tokenOf("user0")
const [news, other] = [channelToken("news"), channelToken("other")]

const resultOf = (of: UserToken) => ({
  ...{ user: of, subscription: "s", fate: "delivered" as const, status: 201 },
  ...{ reason: "accepted" as UnknownReason, attempt: 1, millis: 20, at: Date.now() }
})

/** Stores the plan of a broadcast, and the outcomes of the shard of the user. */
const sent = Effect.fnUntraced(function* (broadcast: number, channel: ChannelToken, to: UserToken) {
  const log = yield* EventLog
  const at = Date.now()
  const body = {
    ...{ broadcast, depth: 1, shards: 16, floor: { subscriptions: 1, registrations: 1 } },
    ...{ acceptedAt: at, expiresAt: at + 60_000, at }
  }
  yield* log.append("work", { subject: subjects.plan(channel, broadcast), type: "plan", body })
  const subject = subjects.shardOutcome(channel, broadcast, shardOf(token, 1))
  const results = [resultOf("x".repeat(22) as UserToken), resultOf(to)]
  const outcome = { broadcast, pushes: 2, results, final: true, at }
  yield* log.append("work", { subject, type: "outcome", body: outcome })
})

/** 450 broadcasts, one after the other: each 15th is to a channel of the user. */
const fill = Effect.gen(function* () {
  const log = yield* EventLog
  const ids: Array<number> = []
  for (let i = 0; i < 450; i++) {
    const channel = i % 15 === 0 ? news : other
    const subject = subjects.broadcast("shop", channel)
    const { seq } = yield* log.append("log", { subject, type: "broadcast", body: {} })
    // An outcome on the other channel, of whoever had the user's name: the user never joined it.
    yield* sent(seq, channel, token)
    if (channel === news) ids.unshift(seq)
  }
  const part = { subject: subjects.part, type: "direct.part" } as const
  const first = yield* log.append("log", { ...part, body: { users: [token] } })
  const direct = subjects.broadcast("rest", directToken)
  const body = { parts: [first.seq] }
  const named = yield* log.append("log", { subject: direct, type: "direct", body })
  yield* sent(named.seq, directToken, token)
  const channels = [other, news]
  const several = subjects.broadcast("rest", channelsToken)
  const both = yield* log.append("log", { subject: several, type: "direct", body: { channels } })
  yield* sent(both.seq, channelsToken, token)
  return [both.seq, named.seq, ...ids]
})

it("finds a push of a channel behind many broadcasts to other users", {
  timeout: 120_000
}, async () => {
  await using nats = await startNats({ syncAlways: false })
  await using push = await startPushService()
  const env = { BELLCAST_OPERATOR_PRINCIPALS: idOf("operator") }
  await using service = await startService({ natsUrl: nats.url, roles: "gateway,projection", env })
  await join([service.url], "news", [push.subscribe().subscription])
  const first = await Effect.gen(function* () {
    const log = yield* EventLog
    const subject = subjects.broadcast("shop", news)
    const { seq } = yield* log.append("log", { subject, type: "broadcast", body: {} })
    yield* sent(seq, news, token)
    const body = { data: {}, users: [tokenOf("somebody")] }
    const direct = { subject: subjects.broadcast("rest", directToken), type: "direct" } as const
    const others = Array.from({ length: 1_300 }, () => log.append("log", { ...direct, body }))
    yield* Effect.all(others, { concurrency: 64 })
    return seq
  }).pipe(Effect.provide(natsLayer({ url: nats.url, name: "test" })), Effect.runPromise)
  const path = `/users/${encodeURIComponent(user)}`
  const { body } = await call(service.url, "GET", path, "operator")
  assert.deepEqual(
    body.data.pushes.map(({ broadcast }: { broadcast: string }) => broadcast),
    [String(first)]
  )
})

// Of up to 20 channels each is searched, of more all broadcasts are.
const counts = [1, 21]
const title = "finds the last pushes to a user who joined %i channels among many broadcasts"

it.each(counts)(title, { timeout: 120_000 }, async (count) => {
  await using nats = await startNats({ syncAlways: false })
  await using push = await startPushService()
  const env = { BELLCAST_OPERATOR_PRINCIPALS: idOf("operator") }
  await using service = await startService({ natsUrl: nats.url, roles: "gateway,projection", env })
  await join([service.url], "news", [push.subscribe().subscription])
  for (let i = 1; i < count; i++)
    await call(service.url, "PUT", `/channels/quiet${i}/registration`, "user0")
  // The audit of a user goes on after the user has left.
  const left = await call(service.url, "DELETE", "/channels/news/registration", "user0")
  assert.equal(left.status, 202)
  const layer = natsLayer({ url: nats.url, name: "test" })
  const ids = await Effect.runPromise(fill.pipe(Effect.provide(layer), Effect.scoped))
  assert.lengthOf(ids, 32)

  const path = `/users/${encodeURIComponent(user)}`
  const { body } = await call(service.url, "GET", path, "operator")
  const shown = body.data.pushes.map(({ broadcast }: { broadcast: string }) => Number(broadcast))
  assert.deepEqual(shown, ids.slice(0, 20))
  assert.notProperty(body.data.pushes[0], "channel")

  const verb = async (...args: ReadonlyArray<string>) => {
    const { code, stderr, stdout } = await runCli([...args, "--nats", nats.url], secretEnvironment)
    assert.deepEqual([code, stderr], [0, ""])
    return stdout.trim().split("\n")
  }
  const person = JSON.parse((await verb("user", "show", user, "--json"))[0]!)
  assert.deepEqual([person.pushes.length, person.more_pushes], [20, true])
  const [last] = (await verb("user", "show", user)).slice(-1)
  assert.equal(
    last,
    `pushes of 20 broadcasts or more; bellcast audit --user ${user} looks further back`
  )
  const rows = async (...args: ReadonlyArray<string>) =>
    (await verb("audit", "--user", user, "--json", ...args)).map((line) => JSON.parse(line))
  const audited = async (...args: ReadonlyArray<string>) =>
    (await rows(...args)).flatMap(({ broadcast, outcome }) =>
      outcome === undefined ? [] : [broadcast]
    )
  assert.deepEqual(await audited(), ids.slice(0, 20))
  assert.isTrue((await rows()).at(-1).more)
  assert.notProperty((await rows("--limit", "40")).at(-1), "more")
  assert.deepEqual(await audited("--limit", "40"), ids)
  const [both, , first] = ids
  // The one that names the user goes to no channel.
  assert.deepEqual(await audited("--channel", "news", "--limit", "2"), [both, first])
})
