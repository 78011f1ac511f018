// Unreachable subscriptions in the running service: three strikes suspend them, and what lifts a
// suspension.
import { Effect } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { auditsOf } from "../support/audit.ts"
import { call, finished, join, publish, until } from "../support/client.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { elapsed } from "../support/quiet.ts"
import { runCli } from "../support/run-cli.ts"
import { scriptedDns } from "../support/scripted-dns.ts"
import { type Service, startService } from "../support/service.ts"
import { suspend } from "../support/suspend.ts"
import { tokenOf } from "../support/users.ts"

/** Intervals of 0.3 s stand for eight hours; eight attempts are over in a second and a half. */
const strikeIntervalMillis = 300
const hurried = {
  BELLCAST_STRIKE_INTERVAL_MILLIS: String(strikeIntervalMillis),
  BELLCAST_RETRY_BASE_MILLIS: "10"
}

const stack = new AsyncDisposableStack()
let nats: TestNats
let dns: ReturnType<typeof scriptedDns>
let service: Service

beforeAll(async () => {
  nats = stack.use(await startNats())
  dns = stack.use(scriptedDns())
  service = stack.use(await startService({ natsUrl: nats.url, env: { ...hurried, ...dns.env } }))
})
afterAll(() => stack.disposeAsync())

/** Messages of the log about subscriptions of the users `name` and a number, without puts. */
const held = (url: string, name: string, users: number) =>
  Effect.runPromise(
    Effect.gen(function* () {
      const log = yield* EventLog
      const found: Array<Record<string, unknown>> = []
      const subjectOf = (i: number) => subjects.subscription(tokenOf(`${name}${i}`))
      const filter = Array.from({ length: users }, (_, i) => subjectOf(i))
      yield* log.replay("log", filter, ({ message }) =>
        Effect.sync(() => {
          if (message.type === "malformed" || message.type === "subscription.put") return
          const {
            at: _,
            generation: __,
            id: ___,
            worker,
            ...rest
          } = message as Record<string, unknown> & typeof message
          found.push({ ...rest, ...(worker === undefined ? {} : { worker: typeof worker }) })
        })
      )
      return found
    }).pipe(Effect.provide(natsLayer({ url, name: "test" })))
  )

const metric = async (base: string, line: RegExp) =>
  String((await call(base, "GET", "/__metrics__")).body)
    .split("\n")
    .filter((each) => line.test(each))

// The first: the metrics count only its strikes.
describe("a subscription whose host has no address", () => {
  it("is suspended by the third strike, hidden from its user, and active again once stored again", {
    timeout: 90_000
  }, async () => {
    await using elsewhere = await startPushService()
    await using lost = await startPushService({ host: "localhost" })
    const agents = [lost.subscribe(), ...Array.from({ length: 3 }, () => elsewhere.subscribe())]
    await join(
      [service.url],
      "news",
      agents.map(({ subscription }) => subscription)
    )
    const before = await call(service.url, "GET", "/subscriptions", "user0")
    const send = async (n: number) => {
      const broadcast = await publish(service.url, "news", { n })
      return {
        broadcast: Number(broadcast),
        counts: await finished(service.url, "news", broadcast)
      }
    }
    dns.say("ENOTFOUND")
    const sent = [await send(1), await send(2), await send(3)]
    for (const { counts } of sent)
      assert.deepInclude(counts, { accepted: 4, delivered: 3, dead: 1 })
    const of = (n: number) => ({
      broadcast: sent[n - 1]!.broadcast,
      cause: "unknown-host",
      worker: "string"
    })
    // The last fact follows the outcome.
    const facts = await until(
      () => held(nats.url, "user", agents.length),
      ({ length }) => length >= 3
    )
    assert.deepEqual(facts, [
      { type: "subscription.struck", ...of(1), strike: 1 },
      { type: "subscription.struck", ...of(2), strike: 2 },
      { type: "subscription.suspended", ...of(3) }
    ])
    assert.deepInclude((await send(4)).counts, { accepted: 3, delivered: 3 })
    for (const [name, count] of [
      ["subscription_strikes", 2],
      ["subscriptions_suspended", 1]
    ])
      assert.match(
        (await metric(service.url, new RegExp(`^bellcast_${name}_total.*host="other"`)))[0] ?? "",
        new RegExp(` ${count}$`)
      )

    const seen = await call(service.url, "GET", "/subscriptions", "user0")
    assert.deepEqual(
      [seen.body, seen.headers.get("etag")],
      [before.body, before.headers.get("etag")]
    )
    dns.say("")
    const again = await call(service.url, "POST", "/subscriptions", "user0", {
      data: agents[0]!.subscription
    })
    assert.deepEqual([again.status, again.body.data], [200, before.body.data[0]])
    assert.deepInclude((await held(nats.url, "user", agents.length)).at(-1), {
      type: "subscription.cleared",
      by: "user"
    })
    assert.deepInclude((await send(5)).counts, { accepted: 4, delivered: 4 })
  })
})

describe("a subscription that alone is refused, redirected or blocked", () => {
  it("gets a strike, loses it with a push, is suspended at once at a forbidden address", {
    timeout: 90_000
  }, async () => {
    await using push = await startPushService()
    await using blocked = await startPushService({ host: "localhost" })
    dns.say("10.0.0.1")
    // Only a process that has reached somebody believes what it sees of others.
    const { subscription } = push.subscribe()
    await call(service.url, "POST", "/subscriptions", "ann", { data: subscription })
    await call(service.url, "PUT", "/channels/warm/registration", "ann")
    await finished(service.url, "warm", await publish(service.url, "warm", { n: 0 }))
    const scripts = [["307", "201"], ["409"], ["401"], ...Array.from({ length: 10 }, () => ["201"])]
    const agents = [...scripts.map((script) => push.subscribe({ script })), blocked.subscribe()]
    const subscriptions = agents.map(({ subscription }) => subscription)
    await join([service.url], "alone", subscriptions, 24, "alone")
    const first = await finished(
      service.url,
      "alone",
      await publish(service.url, "alone", { n: 1 })
    )
    assert.deepInclude(first, { accepted: 14, delivered: 10, dead: 4 })
    // The strike follows the last outcome of a push that was tried again.
    const facts = await until(
      () => held(nats.url, "alone", agents.length),
      ({ length }) => length >= 4
    )
    const causes = facts.map(({ cause, status, strike, type }) => [type, cause, status, strike])
    assert.deepEqual(causes.sort(), [
      ["subscription.struck", "address-not-allowed", undefined, 1],
      ["subscription.struck", "credentials", 401, 1],
      ["subscription.struck", "redirect", 307, 1],
      ["subscription.struck", "unexpected", 409, 1]
    ])
    const second = await finished(
      service.url,
      "alone",
      await publish(service.url, "alone", { n: 2 })
    )
    assert.deepInclude(second, { accepted: 14, delivered: 11, dead: 3 })
    const after = await until(
      () => held(nats.url, "alone", agents.length),
      (list) => list.some(({ type }) => type === "subscription.cleared")
    )
    assert.deepInclude(after, { type: "subscription.cleared", by: "push" })
  })
})

describe("a subscription whose requests are refused while those to others are accepted", () => {
  const badTopic = '400 {"errno":113}'
  const refusals = [
    ...["400", "405", "406", "411", "414", "415", "422", "431", "501", "505"],
    ...["413", badTopic, "400 x-wns-error-description: Ttl value conflicts"],
    "200 x-wns-status: dropped"
  ]

  it("gets a strike, whatever the refusal is, but for that of its size", {
    timeout: 90_000
  }, async () => {
    await using push = await startPushService()
    const agents = [
      ...refusals.map((step) => push.subscribe({ script: [step] })),
      ...Array.from({ length: 20 }, () => push.subscribe())
    ]
    const subscriptions = agents.map(({ subscription }) => subscription)
    await join([service.url], "refused", subscriptions, 24, "refused")
    // Refusals of the first may be recorded before the others are accepted.
    for (let n = 1; n <= 2; n++) {
      const broadcast = await publish(service.url, "refused", { n }, { topic: "t" })
      const counts = await finished(service.url, "refused", broadcast)
      assert.deepInclude(counts, { delivered: 20, dead: refusals.length })
    }
    const named = ({ cause, status, strike }: Record<string, unknown>) =>
      strike === 1 ? [`${cause} ${status}`] : []
    const first = await until(
      async () => (await held(nats.url, "refused", agents.length)).flatMap(named),
      ({ length }) => length >= refusals.length - 1
    )
    assert.sameMembers(first, [
      ...refusals.slice(0, 10).map((step) => `refused ${step}`),
      ...["bad-topic 400", "bad-ttl 400", "dropped 200"]
    ])
  })

  it("gets none where the push service refuses the whole broadcast, or takes nothing", {
    timeout: 90_000
  }, async () => {
    await using push = await startPushService()
    await using refusing = await startPushService()
    const script = ["201", "400", "201"]
    const agents = [
      ...Array.from({ length: 20 }, () => push.subscribe({ script })),
      ...Array.from({ length: 5 }, () => refusing.subscribe({ script: ["400"] }))
    ]
    const subscriptions = agents.map(({ subscription }) => subscription)
    await join([service.url], "whole", subscriptions, 24, "whole")
    const send = async (n: number) =>
      finished(service.url, "whole", await publish(service.url, "whole", { n }))
    assert.deepInclude(await send(1), { delivered: 20, dead: 5 })
    assert.deepInclude(await send(2), { delivered: 0, dead: 25 })
    // What follows from a broadcast is stored before the next one ends.
    assert.deepInclude(await send(3), { delivered: 20, dead: 5 })
    assert.isAtMost(
      (await held(nats.url, "whole", agents.length)).filter(
        ({ type }) => type !== "subscription.cleared"
      ).length,
      1,
      "only the first refusal of a broadcast may look as if it were alone"
    )
  })

  it("gets a strike by broadcasts to its user alone, is suspended by the third", {
    timeout: 90_000
  }, async () => {
    await using push = await startPushService()
    const agents = [push.subscribe({ script: ["405"] }), push.subscribe()]
    const subscriptions = agents.map(({ subscription }) => subscription)
    await join([service.url], "direct", subscriptions.slice(0, 1), 1, "direct")
    await join([service.url], "others", subscriptions.slice(1), 1, "others")
    const send = async (channel: string, n: number) =>
      finished(service.url, channel, await publish(service.url, channel, { n }))
    await send("direct", 0)
    assert.deepEqual(await held(nats.url, "direct", 1), [], "nothing to compare it with")
    await send("others", 0)
    const types = async () => (await held(nats.url, "direct", 1)).map(({ type }) => type)
    for (let n = 1; n <= 3; n++) {
      await send("direct", n)
      await until(types, ({ length }) => length >= n)
      await elapsed(strikeIntervalMillis + 50)
    }
    assert.deepEqual(await types(), [
      "subscription.struck",
      "subscription.struck",
      "subscription.suspended"
    ])
    assert.deepInclude(await send("direct", 4), { accepted: 0 })
  })
})

describe("a subscription that is the only one at its push service", () => {
  it("is suspended by refusals that last three times as long", { timeout: 90_000 }, async () => {
    await using push = await startPushService()
    await using refusing = await startPushService()
    const agents = [refusing.subscribe({ script: ["400"] }), push.subscribe()]
    await join(
      [service.url],
      "only",
      agents.map(({ subscription }) => subscription),
      2,
      "only"
    )
    const facts = () => held(nats.url, "only", agents.length)
    const send = async (n: number) =>
      finished(service.url, "only", await publish(service.url, "only", { n }))
    assert.deepInclude(await send(0), { delivered: 1, dead: 1 })
    for (let n = 1; (await send(n))["dead"] === 1; n++) {
      assert.isBelow(n, 12)
      await elapsed(3 * strikeIntervalMillis + 50)
    }
    const list = await facts()
    assert.isAbove(list.length, 2)
    for (const [i, { cause, status, strike, type }] of list.entries()) {
      const isLast = i === list.length - 1
      const expected = isLast ? ["suspended", undefined] : ["struck", i + 1]
      assert.deepEqual([type, strike], [`subscription.${expected[0]}`, expected[1]])
      assert.deepEqual([cause, status], ["refused", 400])
    }
    assert.isAbove(refusing.requests, list.length, "the first broadcast says nothing")
  })
})

describe("a push that waits for another try", () => {
  it("is given up when its subscription is suspended meanwhile", { timeout: 60_000 }, async () => {
    await using push = await startPushService()
    const agent = push.subscribe({ script: ["503 retry-after 6", "201"] })
    await join([service.url], "waits", [agent.subscription], 1, "waits")
    const broadcast = await publish(service.url, "waits", { n: 1 })
    await push.waitFor(({ requests }) => requests === 1)
    const [stored] = (await call(service.url, "GET", "/subscriptions", "waits0")).body.data
    await suspend(nats.url, "waits0", stored.id)
    assert.deepInclude(await finished(service.url, "waits", broadcast), { accepted: 1, dead: 1 })
    const [audit] = await auditsOf(nats.url, [broadcast])
    assert.deepInclude(audit!.pushes[0], { fate: "dead", reason: "suspended" })
    assert.equal(push.requests, 1)
  })
})

describe("subscriptions at a push service that is not allowed any more", () => {
  it("are suspended at once, and restored by the operator", { timeout: 90_000 }, async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    const from = new Date(Date.now() - 60_000).toISOString()
    const agents = Array.from({ length: 60 }, () => push.subscribe())
    await using before = await startService({ natsUrl: nats.url })
    await join(
      [before.url],
      "news",
      agents.map(({ subscription }) => subscription)
    )
    await before.stop()
    await using strict = await startService({
      natsUrl: nats.url,
      env: { BELLCAST_ALLOW_LOOPBACK_ENDPOINTS: "false" }
    })
    const counts = await finished(strict.url, "news", await publish(strict.url, "news", { n: 1 }))
    assert.deepInclude(counts, { accepted: 60, dead: 60 })
    await until(
      () => held(nats.url, "user", 60),
      ({ length }) => length >= 60
    )
    assert.deepInclude(
      await finished(strict.url, "news", await publish(strict.url, "news", { n: 2 })),
      { accepted: 0 }
    )
    await strict.stop()
    await using service = await startService({ natsUrl: nats.url })
    const restore = async (...args: ReadonlyArray<string>) => {
      const all = ["restore", "--from", from, "--nats", nats.url, ...args]
      const { code, stderr, stdout } = await runCli(all)
      assert.equal(code, 0, stderr)
      return stdout
    }
    assert.equal(await restore("--cause", "gone"), "0 subscriptions of 0 users were restored\n")
    assert.equal(
      await restore("--dry-run"),
      "60 subscriptions of 60 users would be restored: 60 suspended\n"
    )
    assert.equal(
      await restore("--cause", "suspended"),
      "60 subscriptions of 60 users were restored: 60 suspended\n"
    )
    assert.equal(await restore(), "0 subscriptions of 0 users were restored\n")
    assert.deepInclude(
      await finished(service.url, "news", await publish(service.url, "news", { n: 3 })),
      { accepted: 60, delivered: 60 }
    )
  })
})
