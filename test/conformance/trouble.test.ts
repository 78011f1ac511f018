// A gateway whose storage fails: its responses, its log, and its shutdown.
import { Agent, type ClientRequest, type RequestOptions, request } from "node:http"
import { describe, expect, it } from "vitest"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { Api, keys } from "./api.ts"
import { basic } from "./logins/basicauth.ts"
import { check } from "./table.ts"
import { startOwn, targetOf, targetUrl } from "./target.ts"

const apiOf = ({ port }: { port: number }) => new Api(targetOf(`http://127.0.0.1:${port}`))

interface Line {
  readonly msg: string
  readonly [field: string]: unknown
}

const linesOf = (output: string): ReadonlyArray<Line> =>
  output
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Line)

/** Requests whose lines in the log are looked at: a list, a removal, a bad one, and a batch. */
const sendForLog = async (api: ReturnType<typeof apiOf>, endpoint: string) => {
  const query = `endpoint=${encodeURIComponent(endpoint)}&_limit=1&keys.auth=${keys.auth}&_token=`
  const headers = { "user-agent": "tester", "accept-language": "fr", "x-request-id": "request-1" }
  await api.send({ method: "GET", path: `/subscriptions?${query}`, headers })
  // Some clients use the endpoint as the id.
  await api.send({
    method: "DELETE",
    path: `/subscriptions/${encodeURIComponent(endpoint)}?${encodeURIComponent(endpoint)}`
  })
  await api.send({
    method: "POST",
    path: "/subscriptions",
    body: { data: { endpoint: "nonsense", keys } }
  })
  await api.send({
    method: "POST",
    path: "/batch",
    body: { requests: [{ path: "/nothing" }, { path: "/" }] }
  })
}

describe.skipIf(targetUrl !== undefined)("a gateway in trouble", () => {
  it("responds 503 with Retry-After while NATS is gone, stops a batch, and stays up", {
    timeout: 60_000
  }, async () => {
    const nats = await startNats()
    await using service = await startOwn(nats.url)
    const api = apiOf(service)
    await api.stored()
    await nats[Symbol.asyncDispose]()
    const list = { method: "GET", path: "/subscriptions" }
    const broadcast = { method: "POST", path: "/channels/a", as: api.target.publisher, body: {} }
    const registration = { method: "PUT", path: "/channels/a/registration" }
    const batch = {
      method: "POST",
      path: "/batch",
      body: { requests: [{ path: "/" }, { path: "/subscriptions" }, { path: "/" }] }
    }
    const health = { method: "GET", path: "/__heartbeat__" }
    const responses = await Promise.all(
      [list, broadcast, registration, batch, health].map((each) => api.send(each))
    )
    for (const [i, each] of [list, broadcast, registration, batch].entries()) {
      check(responses[i]!, each, { status: 503, errno: 201, headers: { "Retry-After": /^\d+$/ } })
    }
    check(responses[4]!, health, {
      status: 503,
      exactly: { storage: false, cache: false, permission: false, space: false, delivery: false }
    })
    for (const path of ["/__lbheartbeat__", "/"])
      check(await api.send({ method: "GET", path }), { method: "GET" }, { status: 200 })
  })

  it("responds to a write when it can be read, once a projector runs", {
    timeout: 60_000
  }, async () => {
    await using nats = await startNats()
    await using service = await startOwn(nats.url, {
      roles: "gateway",
      env: { BELLCAST_APPLIED_TIMEOUT_MILLIS: "300" }
    })
    const api = apiOf(service)
    const put = { method: "PUT", path: `/channels/${api.channel}/registration` }
    check(await api.send(put), put, { status: 503, errno: 201 })
    const heartbeat = () => api.send({ method: "GET", path: "/__heartbeat__" })
    check(await heartbeat(), put, {
      status: 503,
      exactly: { storage: false, cache: true, permission: true, space: true, delivery: true }
    })
    // Only a projector resumes what somebody paused.
    const { jsm, nc } = await connectAdmin(nats.url)
    await jsm.consumers.pause("BELLCAST_LOG", "planner", new Date(Date.now() + 3_600_000))
    await nc.close()
    await expect
      .poll(async () => (await heartbeat()).json.delivery, { timeout: 10_000 })
      .toBe(false)
    await using _projector = await startOwn(nats.url, { roles: "projection" })
    await expect
      .poll(async () => (await api.send({ method: "GET", path: "/__heartbeat__" })).status, {
        timeout: 10_000
      })
      .toBe(200)
    await expect.poll(async () => (await api.send(put)).status, { timeout: 10_000 }).toBe(202)
    const get = { method: "GET", path: `/channels/${api.channel}` }
    check(await api.send(get), get, { status: 200, body: { data: { registrations: 1 } } })
  })

  it("writes one line for a request, with its fields and without a secret", {
    timeout: 60_000
  }, async () => {
    await using nats = await startNats()
    await using service = await startOwn(nats.url)
    const api = apiOf(service)
    const { endpoint } = await api.stored("very-secret-address")
    await sendForLog(api, endpoint)
    const lines = () =>
      linesOf(service.output()).filter(({ msg }) => msg.endsWith("request.summary"))
    await expect.poll(() => lines().length).toBe(7)
    const [, list, , bad, nothing, root, batch] = lines()
    expect(list).toMatchObject({
      msg: "request.summary",
      agent: "tester",
      lang: "fr",
      rid: "request-1",
      method: "GET",
      path: "/v1/subscriptions",
      code: 200,
      errno: 0,
      uid: api.userId(),
      authn_type: "basicauth",
      t: expect.any(Number),
      time: expect.any(Number)
    })
    expect(list?.["querystring"]).toBe("endpoint=…&_limit=1&…&_token=…")
    expect(bad).toMatchObject({ code: 400, errno: 109 })
    const kinds = lines().map(({ msg }) => msg.replace(".summary", ""))
    expect(kinds.join(" ")).toBe("request request request request subrequest subrequest request")
    expect(batch).toMatchObject({ batch_size: 2, code: 200 })
    expect(root).toMatchObject({ path: "/v1/", uid: api.userId(), authn_type: "basicauth" })
    expect(nothing).toMatchObject({ path: "/v1/nothing", code: 404, errno: 111 })
    const secrets = [
      basic(api.me).slice(6),
      "very-secret-address",
      keys.auth,
      keys.p256dh,
      encodeURIComponent(endpoint)
    ]
    for (const secret of secrets) expect(service.output()).not.toContain(secret)
  })

  it("leaves in time with a connection open, and finishes the request in hand", {
    timeout: 60_000
  }, async () => {
    await using nats = await startNats()
    await using _projector = await startOwn(nats.url, { roles: "projection" })
    const service = await startOwn(nats.url, { roles: "gateway" })
    const api = apiOf(service)
    const agent = new Agent({ keepAlive: true })
    const body = JSON.stringify({ data: api.subscription() })
    const headers = {
      authorization: basic(api.me),
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body)
    }
    const send = (options: RequestOptions, onContinue?: (sent: ClientRequest) => void) =>
      new Promise<number | undefined>((resolve, reject) => {
        const sent = request({ agent, port: service.port, ...options }, (response) => {
          response.resume().on("end", () => resolve(response.statusCode))
        })
        sent.on("error", reject)
        if (onContinue === undefined) sent.end()
        else sent.on("continue", () => onContinue(sent)).flushHeaders()
      })
    expect(await send({ path: "/v1/__lbheartbeat__" })).toBe(200)
    let stopped: Promise<number | null> | undefined
    let began = 0
    // The server handles the request when it sends 100 Continue.
    const inHand = send(
      {
        method: "POST",
        path: "/v1/subscriptions",
        headers: { ...headers, expect: "100-continue" }
      },
      (sent) => {
        began = performance.now()
        stopped = service.stop()
        setTimeout(() => sent.end(body), 300)
      }
    )
    expect(await inHand).toBe(201)
    expect(await stopped).toBe(0)
    // An open keep-alive connection would delay the end by 5 s.
    expect(performance.now() - began).toBeLessThan(4_000)
    agent.destroy()
  })
})
