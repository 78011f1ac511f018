// The outcome table through the running service: what a push service answers, step by step, and
// what becomes of the push and of its subscription. Each row has a push service, a channel and a
// user of its own; all of them run at once, as they do in life.
import { Effect } from "effect"
import { assert, it } from "vitest"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters } from "#streams/subjects.ts"
import { auditsOf } from "../support/audit.ts"
import { call, finished, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { outcomeRows } from "../support/outcome-rows.ts"
import { startPushService } from "../support/push-service.ts"
import { scriptedDns } from "../support/scripted-dns.ts"
import { startService } from "../support/service.ts"

const started = async ([name, row]: (typeof outcomeRows)[number], i: number) => {
  const { host, proven, tls } = row
  const push = await startPushService({
    ...(host === undefined ? {} : { host }),
    ...(tls === undefined ? {} : { tls })
  })
  const agent = push.subscribe({ script: row.script })
  const names = { name, user: `user${i}`, channel: `row${i}` }
  return { ...row, ...names, proven: proven === true, push, agent }
}

/** Strikes and suspensions, by endpoint, as the log has them. */
const heldAgainst = (url: string) =>
  Effect.runPromise(
    Effect.gen(function* () {
      const endpoints = new Map<string, string>()
      const found = new Map<string, string>()
      yield* (yield* EventLog).replay("log", [filters.subscriptions], ({ message, subject }) =>
        Effect.sync(() => {
          if (message.type === "subscription.put") endpoints.set(subject, message.data.endpoint)
          if (message.type === "subscription.struck" || message.type === "subscription.suspended")
            found.set(endpoints.get(subject)!, message.type.slice("subscription.".length))
        })
      )
      return found
    }).pipe(Effect.provide(natsLayer({ url, name: "test" })))
  )

type Started = Awaited<ReturnType<typeof started>>

const store = async (base: string, all: ReadonlyArray<Started>) => {
  for (const { agent, channel, name, user } of all) {
    const data = agent.subscription
    assert.equal((await call(base, "POST", "/subscriptions", user, { data })).status, 201, name)
    const registration = `/channels/${channel}/registration`
    assert.equal((await call(base, "PUT", registration, user)).status, 202, name)
  }
}

/** Publishes to every row, after a first push where our key must be proven, until all is over. */
const sendAll = async (base: string, all: ReadonlyArray<Started>) => {
  const send = ({ channel, headers }: Started) => publish(base, channel, { n: 1 }, headers)
  await Promise.all(
    all
      .filter(({ proven }) => proven)
      .map(async (row) => finished(base, row.channel, await send(row)))
  )
  for (const { push } of all) push.reset()
  const broadcasts = await Promise.all(all.map(send))
  await Promise.all(all.map(({ channel }, i) => finished(base, channel, broadcasts[i]!, 90_000)))
  return broadcasts
}

/** What became of each row, in words. */
const seen = async (
  url: string,
  all: ReadonlyArray<Started>,
  broadcasts: ReadonlyArray<string>
) => {
  const held = await heldAgainst(url)
  const audits = await auditsOf(url, broadcasts)
  return all.map(({ agent, name, push }, i) => {
    const { attempts, fate, reason, status } = audits[i]!.pushes[0]!
    const against = held.get(agent.subscription.endpoint) ?? ""
    return [
      ...[name, fate, reason, status, `${attempts} attempts`, `${push.requests} requests`],
      against
    ]
  })
}

const expected = (all: ReadonlyArray<Started>) =>
  all.map(({ attempts, name, requests, subscription, ends: [fate, reason, status] }) => {
    const against = subscription === "struck" ? "struck" : ""
    return [name, fate, reason, status, `${attempts} attempts`, `${requests} requests`, against]
  })

it("every row of the outcome table is what becomes of a push and of its subscription", {
  timeout: 180_000
}, async () => {
  await using nats = await startNats()
  using dns = scriptedDns()
  dns.say("ENOTFOUND")
  const env = {
    BELLCAST_RETRY_BASE_MILLIS: "30",
    BELLCAST_BREAKER_OPEN_MILLIS: "300",
    BELLCAST_PUSH_TIMEOUT_MILLIS: "4000"
  }
  await using service = await startService({ natsUrl: nats.url, env: { ...env, ...dns.env } })
  const all = await Promise.all(outcomeRows.map(started))
  try {
    await store(service.url, all)
    const broadcasts = await sendAll(service.url, all)
    // Strikes follow the outcomes.
    const struck = all.filter(({ subscription }) => subscription === "struck").length
    await until(
      () => heldAgainst(nats.url),
      ({ size }) => size >= struck
    )
    assert.deepEqual(await seen(nats.url, all, broadcasts), expected(all))
    for (const { name, subscription, user } of all) {
      const kept = subscription === "removed" ? 0 : 1
      await until(
        () => call(service.url, "GET", "/subscriptions", user),
        ({ body }) => body.data.length === kept
      ).catch((error) => assert.fail(`${name}: ${error}`))
    }
    for (const { name, push } of all) assert.deepEqual(push.faults, [], name)
  } finally {
    for (const { push } of all) await push[Symbol.asyncDispose]()
  }
})
