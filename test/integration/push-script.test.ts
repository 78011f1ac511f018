// The simulator's scripts, its sink mode, its waiting, and the simulator as a process.
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Agent, request } from "undici"
import webPush from "web-push"
import { startPushService } from "#test/push-service.ts"
import { spawnPushService } from "#test/spawn-push-service.ts"
import { trustingEnvironment } from "#test/tls.ts"
import type { SubscriptionJson } from "#test/user-agent.ts"

const vapidDetails = { subject: "mailto:ops@example.com", ...webPush.generateVAPIDKeys() }

const send = async (
  to: SubscriptionJson,
  payload = "hello",
  options: { headersTimeout?: number } = {}
) => {
  const { headers, body } = webPush.generateRequestDetails(to, payload, { vapidDetails, TTL: 60 })
  const sent = {
    method: "POST",
    headers: { ...headers, "Content-Length": String(body.length) } as Record<string, string>,
    body
  } as const
  return request(to.endpoint, { ...sent, dispatcher: new Agent(), ...options })
}

describe("a script", () => {
  it("runs one step a request, repeats its last, and delivers only on 2xx", async () => {
    await using service = await startPushService()
    const agent = service.subscribe({ script: ["503", "410", "202", "404"] })
    const statuses = []
    for (let i = 0; i < 5; i += 1)
      statuses.push((await send(agent.subscription, `push ${i}`)).statusCode)
    assert.deepStrictEqual(statuses, [503, 410, 202, 404, 404])
    assert.deepStrictEqual(
      agent.attempts.map(({ status }) => status),
      statuses
    )
    assert.deepStrictEqual(
      agent.received.map(({ text }) => text),
      ["push 2"]
    )
    assert.deepStrictEqual(service.faults, [])
  })

  it("does not spend a step on a push that is refused for what it is", async () => {
    await using service = await startPushService()
    const { subscription } = service.subscribe({ script: ["202", "503"] })
    const refused = await request(subscription.endpoint, { method: "POST", headers: { ttl: "1" } })
    assert.strictEqual(refused.statusCode, 401)
    assert.strictEqual((await send(subscription)).statusCode, 202)
  })

  it("says when to come back: seconds, a date, a date to come, WNS's way", async () => {
    await using service = await startPushService()
    const date = "Fri, 31 Dec 2027 23:59:59 GMT"
    const script = [
      "429 retry-after 2",
      `503 retry-after ${date}`,
      "503 retry-after-date 30",
      "wns-throttled"
    ]
    const { subscription } = service.subscribe({ script })
    const seconds = await send(subscription)
    assert.deepStrictEqual([seconds.statusCode, seconds.headers["retry-after"]], [429, "2"])
    assert.strictEqual((await send(subscription)).headers["retry-after"], date)
    const millisAway =
      Date.parse(String((await send(subscription)).headers["retry-after"])) - Date.now()
    assert.isTrue(millisAway > 25_000 && millisAway <= 30_000, `${millisAway}`)
    const wns = await send(subscription)
    assert.deepStrictEqual(
      [wns.statusCode, wns.headers["x-wns-notificationstatus"]],
      [406, "channelthrottled"]
    )
  })

  it("redirects, and answers with a JSON body", async () => {
    await using service = await startPushService()
    const { subscription } = service.subscribe({
      script: ["redirect http://127.0.0.1:1/x", '400 {"errno":109}']
    })
    const redirect = await send(subscription)
    assert.deepStrictEqual(
      [redirect.statusCode, redirect.headers["location"]],
      [307, "http://127.0.0.1:1/x"]
    )
    assert.deepStrictEqual(await (await send(subscription)).body.json(), { errno: 109 })
  })

  it("hangs, resets, is slow, and never ends", async () => {
    await using service = await startPushService()
    const agent = service.subscribe({ script: ["hang", "reset", "slow 50", "huge"] })
    const failure = (error: { code?: string }) => error.code
    assert.strictEqual(
      await send(agent.subscription, "a", { headersTimeout: 50 }).catch(failure),
      "UND_ERR_HEADERS_TIMEOUT"
    )
    assert.strictEqual(await send(agent.subscription, "b").catch(failure), "ECONNRESET")
    assert.strictEqual((await send(agent.subscription, "c")).statusCode, 201)
    let bytes = 0
    for await (const chunk of (await send(agent.subscription, "d")).body) {
      bytes += chunk.length
      if (bytes > 10_000_000) break
    }
    assert.isAbove(bytes, 10_000_000)
    assert.deepStrictEqual(
      agent.attempts.map(({ status }) => status),
      ["hang", "reset", 201, 201]
    )
    assert.deepStrictEqual(
      agent.received.map(({ text }) => text),
      ["c", "d"]
    )
    assert.isAtLeast(agent.attempts.length, 4)
  })

  it("with a misspelt or no step throws where it is written", async () => {
    await using service = await startPushService()
    assert.throws(() => service.subscribe({ script: ["2o1"] }), /unknown step "2o1"/)
    assert.throws(() => service.subscribe({ script: [] }), /at least one/)
  })
})

describe("waiting", () => {
  it("ends with the request that makes the condition true, or fails with the counts", async () => {
    await using service = await startPushService()
    const agent = service.subscribe()
    const arrived = service.waitFor(() => agent.received.length === 2)
    await send(agent.subscription)
    await send(agent.subscription)
    await arrived
    assert.deepStrictEqual(service.counts, { requests: 2, total: 2, distinct: 1, duplicates: 1 })
    const failure = await service.waitFor(({ requests }) => requests === 3, 20).catch(String)
    assert.match(String(failure), /not in 20 ms.*"requests":2/)
    service.reset()
    assert.deepStrictEqual([service.requests, agent.received.length], [0, 0])
  })
})

describe("a process of its own", () => {
  it("subscribes in bulk, counts duplicates and CPU time, and reports faults", async () => {
    await using service = await spawnPushService()
    const subscriptions = await service.subscribe(20, {
      applicationServerKey: vapidDetails.publicKey
    })
    assert.strictEqual(new Set(subscriptions.map(({ endpoint }) => endpoint)).size, 20)
    const all = service.waitForDistinct(20, 5000)
    for (const subscription of subscriptions) await send(subscription)
    await all
    await send(subscriptions[0]!)
    const { cpuMicros, ...report } = await service.report()
    assert.deepStrictEqual(report, {
      counts: { requests: 21, total: 21, distinct: 20, duplicates: 1 },
      faults: [],
      // Each call of the package web-push signs anew.
      tokens: 21,
      texts: { hello: 21 },
      reached: { hello: 20 }
    })
    assert.isAbove(cpuMicros, 0)
    assert.notStrictEqual(service.pid, process.pid)
    await send({ ...subscriptions[0]!, keys: subscriptions[1]!.keys })
    assert.strictEqual((await service.report()).faults[0]?.status, 400)
    await service.reset()
    assert.strictEqual((await service.report()).counts.requests, 0)
  })

  it("rejects what it cannot do with the reason", async () => {
    await using service = await spawnPushService()
    assert.match(
      String(await service.subscribe(1, { script: ["nonsense"] }).catch(String)),
      /unknown step "nonsense"/
    )
    assert.match(String(await service.waitForDistinct(1, 20).catch(String)), /not in 20 ms/)
  })

  it("as a sink checks nothing and counts by endpoint", async () => {
    await using service = await spawnPushService({ decrypt: false })
    const [first] = await service.subscribe(2)
    const answer = await request(first!.endpoint, { method: "POST", body: "anything" })
    assert.strictEqual(answer.statusCode, 201)
    assert.strictEqual((await request(`${first!.endpoint}x`, { method: "POST" })).statusCode, 404)
    assert.deepStrictEqual((await service.report()).counts, {
      requests: 2,
      total: 1,
      distinct: 1,
      duplicates: 0
    })
  })

  it("over TLS is trusted by a process with the trusting environment and by no other", async () => {
    await using service = await spawnPushService({ tls: true, decrypt: false })
    const [subscription] = await service.subscribe(1)
    const script = `fetch("${subscription!.endpoint}", { method: "POST" })
      .then(({ status }) => status, ({ cause }) => cause.code).then(console.log)`
    const printed = async (env: object) =>
      (
        await promisify(execFile)(process.execPath, ["-e", script], {
          env: { ...process.env, ...env }
        })
      ).stdout.trim()
    assert.strictEqual(await printed(trustingEnvironment), "201")
    assert.strictEqual(await printed({}), "DEPTH_ZERO_SELF_SIGNED_CERT")
  })
})
