// The outcome table through the running service: what a push service answers, step by step, and
// what becomes of the push and of its subscription. Each row has a push service, a channel and a
// user of its own; all of them run at once, as they do in life.
import { Effect } from "effect"
import { assert, it } from "vitest"
import { audit } from "#cli/audit.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { call, finished, publish, until } from "../support/client.ts"
import { userOf } from "../support/history-commands.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { scriptedDns } from "../support/scripted-dns.ts"
import { startService } from "../support/service.ts"

interface Row {
  /** What the push service answers; the last step repeats. */
  readonly script: ReadonlyArray<string>
  /** Fate, reason and status of the last attempt. */
  readonly ends: readonly [fate: string, reason: string, status?: number]
  /** Attempts that count. */
  readonly attempts: number
  /** Requests the push service got. */
  readonly requests: number
  /**
   * What becomes of the subscription: it stays, without a strike, unless the row says otherwise.
   */
  readonly subscription?: "removed" | "struck"
  /** One push arrives first, which proves our key. */
  readonly proven?: true
  readonly headers?: Record<string, string>
  readonly host?: "localhost"
  readonly tls?: true
}

const attemptsMax = 8
const mismatch = '403 {"reason":"VapidPkHashMismatch"}'
const badToken = '403 {"reason":"BadJwtToken"}'
const badTopic = '400 {"errno":113}'
const each = <A extends string | number>(
  list: ReadonlyArray<A>,
  row: (one: A) => Row
): ReadonlyArray<readonly [string, Row]> => list.map((one) => [String(one), row(one)] as const)

const usedUp = (script: string, reason: string, status?: number): Row => {
  const ends = [
    "dead",
    `attempts-used-up:${reason}`,
    ...(status === undefined ? [] : [status])
  ] as unknown as Row["ends"]
  return { script: [script], ends, attempts: attemptsMax, requests: attemptsMax }
}
/** Tried again, and taken. */
const again = (step: string, requests = 2): Row => ({
  script: [step, "201"],
  ends: ["delivered", "accepted", 201],
  attempts: 2,
  requests
})
const dead = (step: string | number, reason: string, more: Partial<Row> = {}): Row => ({
  ...{
    script: [String(step)],
    ends: ["dead", reason, Number(String(step).slice(0, 3))],
    attempts: 1,
    requests: 1
  },
  ...more
})

const rows: ReadonlyArray<readonly [name: string, row: Row]> = [
  ...each([200, 201, 202, 203, 204], (status) => ({
    ...{
      script: [String(status)],
      ends: ["delivered", "accepted", status],
      attempts: 1,
      requests: 1
    }
  })),
  [
    "a success whose body never ends",
    { script: ["huge"], ends: ["delivered", "accepted", 201], attempts: 1, requests: 1 }
  ],
  [
    "a slow success",
    { script: ["slow 200"], ends: ["delivered", "accepted", 201], attempts: 1, requests: 1 }
  ],

  ...each([404, 410], (status) => ({
    ...{
      script: [String(status)],
      ends: ["gone", "gone", status],
      attempts: 1,
      requests: 1,
      subscription: "removed"
    }
  })),

  ...each(
    [
      '400 {"reason":"VapidPkHashMismatch"}',
      mismatch,
      '403 {"message":"do not correspond to the credentials"}',
      '403 {"error":"MismatchSenderId"}',
      '401 {"errno":109,"message":"VAPID public key mismatch"}'
    ],
    (step) => ({
      // Stored a moment ago, so the key may be one that only other processes have: only one of
      // yesterday is removed.
      ...usedUp(step, "key-mismatch", Number(step.slice(0, 3))),
      ...{ script: ["201", step], proven: true, subscription: "struck" }
    })
  ),
  [
    "a mismatch before our key was ever taken",
    {
      script: [mismatch, mismatch, "201"],
      ends: ["delivered", "accepted", 201],
      attempts: 1,
      requests: 3
    }
  ],

  ...each(
    [
      '401 {"errno":109}',
      badToken,
      '400 {"e":"UnauthorizedRegistration"}',
      '400 {"reason":"BadAuthorizationHeader"}'
    ],
    (step) => ({
      ...{ script: [step, "201"], ends: ["delivered", "accepted", 201], attempts: 1, requests: 2 }
    })
  ),
  [
    "credentials refused again by a probe: all wait",
    {
      script: [badToken, badToken, "201"],
      ends: ["delivered", "accepted", 201],
      attempts: 1,
      requests: 3
    }
  ],
  [
    "credentials refused to one while our key is proven",
    {
      ...usedUp("401", "credentials", 401),
      ...{ script: ["201", "401"], proven: true, subscription: "struck" }
    }
  ],

  ["413", dead(413, "too-large")],
  ["a refused Topic, without it", { ...again(badTopic), attempts: 1, headers: { topic: "t" } }],
  ["a refused Topic, again", dead(badTopic, "bad-topic", { requests: 2, headers: { topic: "t" } })],
  ["WNS on the TTL", dead("400 x-wns-error-description: Ttl value conflicts", "bad-ttl")],
  ...each([400, 405, 406, 411, 414, 415, 422, 431, 501, 505], (status) => dead(status, "refused")),

  ["429", again("429 retry-after 1")],
  ["429 for ever", { ...usedUp("429", "throttled", 429) }],
  ["a success that WNS throttles", again("200 x-wns-status: channelthrottled")],
  ["a removal that WNS throttles", again("410 x-wns-notificationstatus: appthrottled")],

  ...each(
    [408, 425, 500, 502, 503, 504, 507, 520, 521, 522, 523, 524, 525, 526, 527, 599],
    (status) => again(String(status))
  ),
  ["503 with a date", again("503 retry-after-date 2")],
  ["503 for ever", usedUp("503", "server-error", 503)],
  [
    "503 for longer than the push lives",
    {
      script: ["503 retry-after 90"],
      ends: ["expired", "expired:server-error", 503],
      attempts: 1,
      requests: 1,
      headers: { ttl: "60" }
    }
  ],

  ...each([300, 301, 302, 303, 308], (status) =>
    dead(status, "redirect", { subscription: "struck" })
  ),
  [
    "a redirect, not followed",
    {
      ...dead(307, "redirect", { subscription: "struck" }),
      script: ["redirect http://127.0.0.1:1/"]
    }
  ],
  ...each([402, 409, 418, 451], (status) => dead(status, "unexpected", { subscription: "struck" })),
  ["421, over another connection", { ...again("421"), attempts: 1 }],
  ["421 again", dead(421, "unexpected", { requests: 2, subscription: "struck" })],

  [
    "a name that does not exist",
    { ...usedUp("201", "unknown-host"), host: "localhost", requests: 0, subscription: "struck" }
  ],
  ["a connection that breaks", again("reset")],
  ["no answer in time", again("hang")],
  ["a certificate that nobody vouches for", { ...usedUp("201", "tls"), tls: true, requests: 0 }]
]

const started = async (row: Row, i: number) => {
  const { host, proven, tls } = row
  const push = await startPushService({
    ...(host === undefined ? {} : { host }),
    ...(tls === undefined ? {} : { tls })
  })
  const agent = push.subscribe({ script: row.script })
  return { ...row, proven: proven === true, push, agent, user: `user${i}`, channel: `row${i}` }
}

/** Strikes and suspensions, by endpoint, as the log has them. */
const heldAgainst = (url: string) =>
  Effect.runPromise(
    Effect.gen(function* () {
      const endpoints = new Map<string, string>()
      const found = new Map<string, string>()
      yield* (yield* EventLog).replay("log", [filters.subscriptions], ({ message, subject }) =>
        Effect.sync(() => {
          if (message.type === "subscription.put/1") endpoints.set(subject, message.data.endpoint)
          if (
            message.type === "subscription.struck/1" ||
            message.type === "subscription.suspended/1"
          )
            found.set(
              endpoints.get(subject)!,
              message.type.slice("subscription.".length, -"/1".length)
            )
        })
      )
      return found
    }).pipe(Effect.provide(natsLayer({ url, name: "test" })))
  )

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
  const all = await Promise.all(
    rows.map(async ([name, row], i) => ({ name, ...(await started(row, i)) }))
  )
  try {
    const base = service.url
    const send = ({ channel, headers }: (typeof all)[number]) =>
      publish(base, channel, { n: 1 }, headers)
    for (const { agent, channel, name, user } of all) {
      assert.equal(
        (await call(base, "POST", "/subscriptions", user, { data: agent.subscription })).status,
        201,
        name
      )
      assert.equal(
        (await call(base, "PUT", `/channels/${channel}/registration`, user)).status,
        202,
        name
      )
    }
    await Promise.all(
      all
        .filter(({ proven }) => proven)
        .map(async (row) => finished(base, row.channel, await send(row)))
    )
    for (const { push } of all) push.reset()
    const broadcasts = await Promise.all(all.map(send))
    await Promise.all(all.map(({ channel }, i) => finished(base, channel, broadcasts[i]!, 90_000)))
    const held = await heldAgainst(nats.url)

    const layer = natsLayer({ url: nats.url, name: "test" })
    const audits = await Effect.runPromise(
      Effect.forEach(broadcasts, (each) => audit(Number(each))).pipe(Effect.provide(layer))
    )
    const seen = all.map(({ agent, name, push }, i) => {
      const { attempts, fate, reason, status } = audits[i]!.pushes[0]!
      const against = held.get(agent.subscription.endpoint) ?? ""
      return [
        name,
        fate,
        reason,
        status,
        `${attempts} attempts`,
        `${push.requests} requests`,
        against
      ]
    })
    assert.deepEqual(
      seen,
      all.map(({ attempts, name, requests, subscription, ends: [fate, reason, status] }) => {
        const against = subscription === "struck" ? "struck" : ""
        return [name, fate, reason, status, `${attempts} attempts`, `${requests} requests`, against]
      })
    )
    for (const { name, subscription, user } of all) {
      const kept = subscription === "removed" ? 0 : 1
      await until(
        () => call(base, "GET", "/subscriptions", user),
        ({ body }) => body.data.length === kept
      ).catch((error) => assert.fail(`${name}: ${error}`))
    }
    for (const { name, push } of all) assert.deepEqual(push.faults, [], name)
  } finally {
    for (const { push } of all) await push[Symbol.asyncDispose]()
  }
})

it("a subscription that nothing can be encrypted for is removed, and the log says why", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats()
  await using push = await startPushService()
  await using service = await startService({ natsUrl: nats.url })
  const layer = natsLayer({ url: nats.url, name: "test" })
  // The gateway would refuse it.
  const keys = {
    auth: Buffer.alloc(16).toString("base64url"),
    p256dh: Buffer.alloc(65, 4).toString("base64url")
  }
  const data = { endpoint: push.subscribe().subscription.endpoint, keys }
  await Effect.runPromise(
    Effect.gen(function* () {
      const log = yield* EventLog
      const body = { user: "u", id: "a", data, lastModified: 1 }
      yield* log.append("log", {
        subject: subjects.subscription(userOf(1)),
        type: "subscription.put/1",
        body
      })
      const place = subjects.registration(channelToken("news"), userOf(1))
      yield* log.append("log", {
        subject: place,
        type: "registration.put/1",
        body: { user: "u", at: 1 }
      })
    }).pipe(Effect.provide(layer))
  )
  assert.deepInclude(
    await finished(service.url, "news", await publish(service.url, "news", { n: 1 })),
    { accepted: 1, gone: 1 }
  )
  const removal = await Effect.runPromise(
    Effect.flatMap(EventLog, (log) => log.last("log", subjects.subscription(userOf(1)))).pipe(
      Effect.provide(layer)
    )
  )
  assert.deepInclude(removal?.message, {
    type: "subscription.gone/1",
    cause: "invalid-key",
    status: 0
  })
  assert.equal(push.requests, 0)
})
