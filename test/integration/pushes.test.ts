// The pushes of a broadcast over HTTP: each once, with its last outcome, and never whose it was.
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import type { JsonObject } from "#basics/json.ts"
import type { Fate, PushResult } from "#domain/outcome.ts"
import type { UnknownReason } from "#domain/reason.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken, shardOf, shardsAt, type UserToken } from "#streams/tokens.ts"
import { pushesOf } from "../support/audit.ts"
import { call, finished, join, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"
import { useService } from "../support/use-service.ts"
import { idOf, tokenOf } from "../support/users.ts"

interface Shown {
  readonly subscription: string
  readonly outcome: string
  readonly push_service: string
}

const env = {
  BELLCAST_CHANNEL_WRITE_PRINCIPALS: idOf("publisher"),
  BELLCAST_OPERATOR_PRINCIPALS: idOf("operator"),
  BELLCAST_LOG_REQUESTS: "false"
}

const list = (url: string, id: string, query = "", user = "publisher") =>
  call(url, "GET", `/broadcasts/${id}/pushes${query}`, user)

/** All pages of a list. */
const pagesOf = async (url: string, id: string, query: string, user = "publisher") => {
  const pages: Array<ReadonlyArray<Shown>> = []
  for (let next: string | null = query; next !== null; ) {
    const { body, headers, status } = await list(url, id, next, user)
    assert.equal(status, 200, JSON.stringify(body))
    pages.push(body.data)
    next = headers.get("next-page")?.replace(/^[^?]*/, "") ?? null
  }
  return pages
}

/** Two pages of CSV have the pushes of a list of JSON. */
const checkCsv = async (url: string, id: string, pushes: ReadonlyArray<JsonObject>) => {
  const page = (query: string) =>
    call(url, "GET", `/broadcasts/${id}/pushes${query}`, "publisher", undefined, {
      accept: "text/csv"
    })
  const first = await page("?_limit=3")
  const second = await page(new URL(first.headers.get("next-page")!).search)
  assert.isNull(second.headers.get("next-page"))
  const lines = [first, second].flatMap(({ body }) => {
    assert.match(body, /^subscription,push_service,.*\r\n$/s)
    return body.split("\r\n").slice(1, -1)
  })
  assert.deepEqual(
    lines,
    pushes.map(({ at, attempts, millis, outcome, push_service, reason, status, subscription }) =>
      [
        ...[subscription, push_service, outcome, reason, status, attempts, millis],
        ...[new Date(Number(at)).toISOString(), "", ""]
      ].join(",")
    )
  )
}

describe("the pushes of a broadcast", { timeout: 60_000 }, () => {
  it("are listed with their last outcomes, and by user to operators only", async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    await using service = await startService({ natsUrl: nats.url, env })
    const { url } = service
    const scripts = [["201"], ["410"], ["400"], ["503", "201"]]
    const subscriptions = scripts.map((script) => push.subscribe({ script }).subscription)
    await join([url], "news", subscriptions)
    const id = await publish(url, "news", { n: 1 })
    await finished(url, "news", id)

    const { body } = await list(url, id)
    const audited = await pushesOf(nats.url, id)
    const expected = audited.map(({ attempts, fate, reason, subscription }) => ({
      ...{ subscription, outcome: fate, reason, attempts }
    }))
    const shown = (body.data as ReadonlyArray<Record<string, unknown>>).map(
      ({ attempts, outcome, reason, subscription }) => ({ subscription, outcome, reason, attempts })
    )
    assert.deepEqual(shown, expected)
    await checkCsv(url, id, body.data)
    const outcomes = shown.map(({ attempts, outcome }) => `${outcome} ${attempts}`).sort()
    assert.deepEqual(outcomes, ["dead 1", "delivered 1", "delivered 2", "gone 1"])
    const text = JSON.stringify(body)
    for (const user of [0, 1, 2, 3].map((i) => `user${i}`))
      for (const secret of [tokenOf(user), idOf(user), push.origin]) assert.notInclude(text, secret)

    const outcomesBy = async (query: string, user?: string) =>
      (await pagesOf(url, id, query, user)).flat().map(({ outcome }) => outcome)
    assert.deepEqual(await outcomesBy("?outcome=delivered"), ["delivered", "delivered"])
    assert.deepEqual(await outcomesBy("?outcome=expired"), [])
    assert.lengthOf(await outcomesBy("?push_service=other"), 4)
    assert.deepEqual(await outcomesBy("?push_service=google"), [])
    assert.deepEqual(
      (await pagesOf(url, id, "?_limit=1")).map((page) => page[0]?.subscription),
      audited.map(({ subscription }) => subscription)
    )

    const of = (user: string) => `?user=${encodeURIComponent(idOf(user))}`
    assert.deepEqual(await outcomesBy(of("user1"), "operator"), ["gone"])
    assert.deepEqual(await outcomesBy(of("nobody"), "operator"), [])
    assert.lengthOf(await outcomesBy("", "operator"), 4)
    assert.deepInclude((await list(url, id, of("user1"))).body, { code: 403, errno: 121 })
    assert.equal((await list(url, id, "", "user1")).status, 404)
    const lines = async () => service.output().match(/.*"person":.*/g) ?? []
    // One for each look of the operator at a person, although requests are not logged here.
    const looked = await until(lines, (found) => found.length === 2)
    assert.include(looked[0], `"person":"${tokenOf("user1")}"`)
    assert.include(looked[0], `"uid":"${idOf("operator")}"`)
  })
})

describe("the pages of a large broadcast", { timeout: 120_000 }, () => {
  const shared = useService({ roles: "gateway,projection", env }, { syncAlways: false })

  it("have each push on exactly one of them, in its last state", async () => {
    const { nats, service } = shared
    const id = await publish(service.url, "news", {})
    const stored = await append(nats.url, Number(id))
    const pages = await pagesOf(service.url, id, "")
    assert.isAbove(pages.length, 3)
    const all = pages.flat()
    assert.deepEqual(
      all.map(({ outcome, push_service, subscription }) => [subscription, outcome, push_service]),
      stored.map(({ fate, service, subscription }) => [subscription, fate, service ?? "other"])
    )
    const pick = async (query: string) => (await pagesOf(service.url, id, query, "operator")).flat()
    const dead = stored.filter(({ fate, service }) => fate === "dead" && service === "google")
    assert.lengthOf(await pick("?outcome=dead&push_service=google"), dead.length)
    assert.deepEqual(await pick("?outcome=retrying"), [])
    const one = await pick(`?user=${encodeURIComponent(idOf("user77"))}`)
    assert.deepEqual(
      one.map(({ subscription }) => subscription),
      ["s77", "s1077"]
    )
  })

  it("count its dead pushes, 10,000 on each, and take no limit", async () => {
    const { nats, service } = shared
    const count = 10_001
    await appendDead(nats.url, count)
    const first = await call(service.url, "GET", `/dead?broadcast=${dead}`, "operator")
    assert.deepEqual(
      first.body.data.map(({ pushes }: { readonly pushes: number }) => pushes),
      [10_000]
    )
    const next = first.headers.get("next-page")!
    assert.match(next, new RegExp(`/v1/dead\\?broadcast=${dead}&_token=[^&]+$`))
    const second = await call(service.url, "GET", next.slice(service.url.length), "operator")
    assert.deepInclude(second.body.data[0], { pushes: 1, first_at: count, last_at: count })
    assert.isNull(second.headers.get("next-page"))
  })
})

const channel = channelToken("news")
const usersMax = 1_000

const resultOf = (i: number, fate: Fate): PushResult => ({
  user: tokenOf(`user${i % usersMax}`),
  subscription: `s${i}`,
  fate,
  reason: "because" as UnknownReason,
  attempt: 1,
  millis: 5,
  at: 1_010,
  ...(i % 3 === 0 && { service: "google" })
})

/** Appends the outcomes of 2,000 pushes. Returns the last of each, in the order of the first. */
const append = (natsUrl: string, broadcast: number) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const floor = { subscriptions: 1, registrations: 1 }
    const times = { acceptedAt: 1, expiresAt: 90_000, at: 1 }
    yield* log.append("work", {
      subject: subjects.plan(channel, broadcast),
      type: "plan",
      body: { broadcast, depth: 1, shards: 16, floor, ...times }
    })
    const stored: Array<PushResult> = []
    const fates = ["delivered", "retrying", "dead", "gone"] as const
    const all = Array.from({ length: 2 * usersMax }, (_, i) => resultOf(i, fates[i % 4]!))
    for (const shard of shardsAt(1)) {
      const mine = all.filter(({ user }) => shardOf(user as UserToken, 1) === shard)
      for (let i = 0; i < mine.length; i += 8) {
        const results = mine.slice(i, i + 8)
        const body = { broadcast, pushes: results.length, results, final: false, at: 1_010 }
        const subject = subjects.shardOutcome(channel, broadcast, shard)
        yield* log.append("work", { subject, type: "outcome", body })
        stored.push(...results)
      }
    }
    return yield* Effect.forEach(
      stored,
      Effect.fnUntraced(function* (first) {
        if (first.fate !== "retrying") return first
        const again: PushResult = { ...first, fate: "expired", attempt: 2 }
        const user = first.user as UserToken
        const subject = subjects.pushOutcome(channel, broadcast, user, first.subscription)
        const body = { broadcast, pushes: 0, results: [again], final: true, at: 1_011 }
        yield* log.append("work", { subject, type: "outcome", body })
        return again
      }),
      { concurrency: 64 }
    )
  }).pipe(Effect.provide(natsLayer({ url: natsUrl, name: "test" })), Effect.runPromise)

/** The broadcast of these letters: no other case has one with this id. */
const dead = 1_000_000

/** Appends the letters of so many dead pushes. */
const appendDead = (natsUrl: string, count: number) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const user = tokenOf("nobody") as UserToken
    const letter = (n: number) =>
      log.append("work", {
        subject: subjects.deadLetter(channel, dead, user, `s${n}`),
        type: "dead",
        body: {
          ...{ broadcast: dead, channel, acceptedAt: 1, expiresAt: 2, urgency: "normal" },
          ...{ user, subscription: `s${n}`, generation: 1, reason: "refused" },
          ...{ status: 400, attempts: 1, at: n }
        }
      })
    const numbers = Array.from({ length: count }, (_, n) => n + 1)
    yield* Effect.forEach(numbers, letter, { concurrency: 256, discard: true })
  }).pipe(Effect.provide(natsLayer({ url: natsUrl, name: "test" })), Effect.runPromise)
