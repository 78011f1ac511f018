// What the service counts of itself, as Prometheus reads it, and that it names nobody.
import { assert, describe, it } from "vitest"
import { hostLabel } from "#telemetry/delivery-metrics.ts"
import { call, finished, join, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { reply } from "../support/push-script.ts"
import { startPushService } from "../support/push-service.ts"
import { startService, vapid } from "../support/service.ts"

describe("the metrics", () => {
  it("tell what became of a broadcast's pushes and of the requests, and name nobody", {
    timeout: 60_000
  }, async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    await using service = await startService({ natsUrl: nats.url })
    const scripts = [["201"], ["201"], ["201"], ["410"], ["503", "201"], ["400"]]
    const agents = scripts.map((script) => push.subscribe({ script }))
    await join(
      [service.url],
      "secret-channel",
      agents.map(({ subscription }) => subscription)
    )
    const counts = await finished(
      service.url,
      "secret-channel",
      await publish(service.url, "secret-channel", { n: 1 })
    )
    assert.deepInclude(counts, { accepted: 6, delivered: 4, gone: 1, dead: 1 })
    await call(service.url, "GET", "/subscriptions/some-id", "user0")
    await call(service.url, "GET", "/no/such/page", "user0")
    // A method that no endpoint has, and one that this endpoint has not.
    for (const method of ["PROPFIND", "PATCH"]) await call(service.url, method, "/", "user0")

    const { body, headers, status } = await call(service.url, "GET", "/__metrics__")
    assert.equal(status, 200)
    assert.equal(headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8")
    const text = body as string
    const value = (name: string, ...labels: ReadonlyArray<string>) => {
      const line = text
        .split("\n")
        .find(
          (each) =>
            each.replace(/\{.*| .*/, "") === name && labels.every((label) => each.includes(label))
        )
      return line === undefined ? undefined : Number(line.split(" ").at(-1))
    }
    assert.equal(value("bellcast_pushes_total", 'fate="delivered"', 'host="other"'), 4)
    for (const fate of ["gone", "dead", "retrying"])
      assert.equal(value("bellcast_pushes_total", `fate="${fate}"`, 'host="other"'), 1)
    const results = { accepted: 4, gone: 1, failed: 2, throttled: 0, refused: 0 }
    for (const [result, count] of Object.entries(results))
      assert.equal(
        value("bellcast_push_attempts_total", `result="${result}"`, 'host="other"'),
        count,
        result
      )
    assert.equal(value("bellcast_push_latency_seconds_count", 'fate="delivered"'), 4)
    assert.equal(value("bellcast_push_latency_seconds_bucket", 'fate="delivered"', 'le="60"'), 4)
    assert.equal(
      value(
        "bellcast_http_requests_total",
        'method="POST"',
        'endpoint="/subscriptions"',
        'status="201"'
      ),
      6
    )
    assert.equal(
      value("bellcast_http_requests_total", 'method="GET"', 'endpoint="none"', 'status="404"'),
      1
    )
    assert.equal(
      value("bellcast_http_requests_total", 'method="other"', 'endpoint="/"', 'status="405"'),
      2
    )
    assert.equal(
      value(
        "bellcast_http_request_duration_seconds_count",
        'method="PUT"',
        "/channels/:channel/registration"
      ),
      6
    )

    const secrets = agents.flatMap(({ subscription: { endpoint, keys } }) => [
      new URL(endpoint).pathname,
      keys.auth,
      keys.p256dh
    ])
    const lists = await Promise.all(agents.map((_, i) => call(service.url, "GET", "/", `user${i}`)))
    const ids = lists.map(({ body }) => body.user.id as string)
    for (const secret of [
      ...secrets,
      ...ids,
      "127.0.0.1",
      "user0",
      "secret-channel",
      "some-id",
      "such/page",
      vapid.publicKey,
      vapid.privateKey
    ])
      assert.notInclude(text, secret)
    assert.notMatch(text, /^(process_|nodejs_|bellcast_build_info)/m)

    assert.equal((await call(service.url, "HEAD", "/__metrics__")).status, 200)
    const preflight = { origin: "https://example.org", "access-control-request-method": "GET" }
    assert.equal(
      (await call(service.url, "OPTIONS", "/__metrics__", undefined, undefined, preflight)).status,
      200
    )
    const refused = await call(service.url, "POST", "/__metrics__")
    assert.deepEqual([refused.status, refused.headers.get("allow")], [405, "GET, HEAD, OPTIONS"])
    assert.property((await call(service.url, "GET", "/__api__")).body.paths, "/__metrics__")
  })

  it("tell the state of push services, of those under one name the worst", {
    timeout: 60_000
  }, async () => {
    await using nats = await startNats()
    await using fine = await startPushService()
    await using throttling = await startPushService()
    await using gone = await startPushService()
    await using refusing = await startPushService()
    const env = { BELLCAST_PUSHES_UNDER_WAY_MAX: "8" }
    await using service = await startService({ natsUrl: nats.url, env })
    const states = async () => {
      const text = String((await call(service.url, "GET", "/__metrics__")).body)
      const value = (name: string) =>
        new RegExp(`^bellcast_push_service_${name}\\{host="other"\\} (\\d+)$`, "m").exec(text)?.[1]
      return ["credentials_state", "guard_holding", "window_pushes"].map(value).join(" ")
    }
    const send = async (
      push: typeof fine,
      channel: string,
      count: number,
      ...script: ReadonlyArray<string>
    ) => {
      const agents = Array.from({ length: count }, () => push.subscribe({ script }))
      await join(
        [service.url],
        channel,
        agents.map(({ subscription }) => subscription)
      )
      await publish(service.url, channel, { n: 1 })
    }
    const become = (wanted: string) => until(states, (now) => now === wanted)
    await send(fine, "fine", 1, "201")
    await become("0 0 8")
    await send(throttling, "throttling", 8, "429 retry-after 60")
    await become("0 0 4")
    await send(gone, "gone", 60, "410")
    await become("0 1 4")
    await send(refusing, "refusing", 1, "403")
    await become("2 1 4")
  })

  it("tell what waits and for how long, whichever stage is missing, each process at its port", {
    timeout: 60_000
  }, async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    await using gateway = await startService({ natsUrl: nats.url, roles: "gateway,projection" })
    const [one, other] = [push.subscribe(), push.subscribe()]
    let isAway = true
    const refusal = reply(503, () => ({ "retry-after": "3" }))
    other.answerBy((next) => (isAway ? refusal : next()))
    await join([gateway.url], "news", [one.subscription, other.subscription])
    const look = async () => {
      const askedAt = performance.now()
      const { body } = await call(gateway.url, "GET", "/__metrics__")
      const lines = (body as string).split("\n")
      const value = (name: string) =>
        Number(lines.find((line) => line.startsWith(`${name} `))?.split(" ")[1])
      const jobs = ["planner", "deliver", "retry"].map((consumer) =>
        value(`bellcast_backlog_messages{reader="${consumer}"}`)
      )
      const [log, work] = ["LOG", "WORK"].map((name) =>
        value(`bellcast_stream_messages_total{stream="BELLCAST_${name}"}`)
      )
      const roles = ["gateway", "fanout", "delivery"].map((role) =>
        value(`bellcast_role_processes{role="${role}"}`)
      )
      const due = ["planner", "deliver", "retry", "projector", "tally"].map(
        (reader) => value(`bellcast_backlog_age_seconds{reader="${reader}"}`) > 0
      )
      return {
        askedAt,
        due: due.map(Number).join(" "),
        roles: roles.join(" "),
        storage: value('bellcast_heartbeat{check="storage"}'),
        jobs: jobs.join(" "),
        age: value("bellcast_oldest_push_age_seconds"),
        known: value("bellcast_backlog_known"),
        log: log!,
        work: work!
      }
    }
    const seen = (jobs: string) => until(look, (now) => now.jobs === jobs)
    const before = await seen("0 0 0")
    assert.deepInclude(before, { age: 0, work: 0 })
    assert.isAtLeast(before.log, 4, "two subscriptions, two registrations")

    const publishedAt = performance.now()
    const broadcast = await publish(gateway.url, "news", { n: 1 })
    const acceptedAt = performance.now()
    const isAge = ({ age, askedAt }: { readonly age: number; readonly askedAt: number }) => {
      assert.isAtLeast(age, (askedAt - acceptedAt) / 1000 - 0.5)
      assert.isAtMost(age, (performance.now() - publishedAt) / 1000 + 0.1)
    }
    const published = await until(look, ({ due, jobs }) => jobs === "1 0 0" && due[0] === "1")
    isAge(published)
    assert.deepInclude(published, { due: "1 0 0 0 0", roles: "1 0 0", storage: 1 })
    assert.equal(published.log, before.log + 1)
    await using fanout = await startService({ natsUrl: nats.url, roles: "fanout,tally" })
    const planned = await until(look, ({ due, jobs }) => jobs === "0 1 0" && due === "0 1 0 0 0")
    isAge(planned)
    assert.equal(planned.roles, "1 1 0")
    assert.equal(planned.work, 2, "a plan and a job")
    await using delivery = await startService({ natsUrl: nats.url, roles: "delivery" })
    const retrying = await until(look, ({ due, jobs }) => jobs === "0 0 1" && due === "0 0 0 0 0")
    isAge(retrying)
    assert.equal(retrying.roles, "1 1 1")
    assert.isAbove(retrying.age, planned.age)
    isAway = false
    assert.deepInclude(await finished(gateway.url, "news", broadcast), { delivered: 2 })
    for (const { metricsUrl } of [gateway, fanout, delivery]) {
      const scraped = String((await call(metricsUrl(), "GET", "/metrics")).body)
      const counted = /^bellcast_pushes_total\{.*delivered.*\} 2$/m.test(scraped)
      assert.equal(counted, metricsUrl === delivery.metricsUrl)
      assert.equal(/^bellcast_push_service_credentials_state\{.*\} 0$/m.test(scraped), counted)
      assert.match(scraped, /^bellcast_oldest_push_age_seconds \d/m)
      for (const path of ["/__heartbeat__", "/__lbheartbeat__"])
        assert.equal((await call(metricsUrl(), "GET", path)).status, 200, path)
    }
    // The last is the fact that it is finished.
    const after = await until(look, ({ jobs, log }) => jobs === "0 0 0" && log > published.log)
    assert.equal(after.age, 0)
    isAway = true
    const againAt = performance.now()
    await publish(gateway.url, "news", { n: 2 })
    const again = await seen("0 0 1")
    // A finished broadcast does not count.
    assert.isAtMost(again.age, (performance.now() - againAt) / 1000 + 0.1)
    await nats.kill()
    // The gauges keep their last values. No alert compares with NaN.
    const away = await until(look, ({ known }) => known === 0)
    assert.deepInclude(away, { jobs: "0 0 1", log: after.log + 1 })
    assert.isAtLeast((await until(look, ({ age }) => age > away.age)).age, 0)
    await until(look, ({ storage }) => storage === 0)
  })

  it("call a push service by its entry in the allow-list, and all others one", () => {
    const labelOf = hostLabel(["push.example.org", "*.Example.net", "*"])
    for (const [host, label] of [
      ["fcm.googleapis.com", "fcm.googleapis.com"],
      ["web.push.apple.com", "web.push.apple.com"],
      ["api.push.apple.com", "*.push.apple.com"],
      ["db5p.notify.windows.com", "*.notify.windows.com"],
      ["push.example.org", "push.example.org"],
      ["7.example.net", "*.example.net"],
      ["example.net", "other"],
      ["notfcm.googleapis.com", "other"],
      ["", "other"]
    ] as const)
      assert.equal(labelOf(host), label)
  })
})
