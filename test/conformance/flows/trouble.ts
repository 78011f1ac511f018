// A gateway whose storage fails: its responses, its log, and its shutdown.
import { Agent, type ClientRequest, type RequestOptions, request } from "node:http"
import { expect, it } from "vitest"
import { startNats } from "../../support/nats.ts"
import { connectAdmin } from "../../support/nats-admin.ts"
import { Api, keys } from "../api.ts"
import type { Login } from "../logins/login.ts"
import { check } from "../table.ts"
import { startFor, startOwn } from "../target.ts"

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
const sendForLog = async (api: Api, endpoint: string) => {
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

/** The heartbeat's members for policies: their servers are well. */
const policiesOf = ({ isInHeartbeat, policy }: Login) => (isInHeartbeat ? { [policy]: true } : {})

/** The secret part of a user's credentials. The rest is the id, which the log shows. */
const secretsOf = async (api: Api): Promise<ReadonlyArray<string>> => {
  const { authorization, ...others } = await api.headersOf(api.me)
  const token = authorization?.slice(authorization.indexOf(" ") + 1)
  const values = [...Object.values(others), ...(token === undefined ? [] : [token])]
  return values.filter((value) => !api.userId().includes(value))
}

const testOutage = (login: Login): void => {
  it("responds 503 with Retry-After while NATS is gone, stops a batch, and stays up", {
    timeout: 60_000
  }, async () => {
    const nats = await startNats()
    await using own = await startFor(login, nats.url)
    const api = new Api(own.target)
    await api.stored()
    // A login by mail needs the bucket `cache`, which is away during the outage.
    await api.headersOf(api.target.publisher)
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
      exactly: {
        storage: false,
        cache: false,
        permission: false,
        space: false,
        delivery: false,
        roles: false,
        ...policiesOf(login)
      }
    })
    for (const path of ["/__lbheartbeat__", "/"])
      check(await api.send({ method: "GET", path }), { method: "GET" }, { status: 200 })
  })
}

const testLateProjector = (login: Login): void => {
  it("responds to a write when it can be read, once a projector runs", {
    timeout: 120_000
  }, async () => {
    await using nats = await startNats()
    await using own = await startFor(login, nats.url, 1, { roles: "gateway" })
    const api = new Api(own.target)
    const put = { method: "PUT", path: `/channels/${api.channel}/registration` }
    check(await api.send(put), put, { status: 503, errno: 201 })
    const heartbeat = () => api.send({ method: "GET", path: "/__heartbeat__" })
    check(await heartbeat(), put, {
      status: 503,
      exactly: {
        storage: false,
        cache: true,
        permission: true,
        space: true,
        delivery: true,
        roles: true,
        ...policiesOf(login)
      }
    })
    // Only a projector resumes what somebody paused.
    const { jsm, nc } = await connectAdmin(nats.url)
    await jsm.consumers.pause("BELLCAST_LOG", "planner", new Date(Date.now() + 3_600_000))
    await nc.close()
    await expect.poll(async () => (await heartbeat()).json.delivery).toBe(false)
    await using _projector = await startOwn(nats.url, { roles: "projection" })
    await expect.poll(async () => (await heartbeat()).status).toBe(200)
    await expect.poll(async () => (await api.send(put)).status).toBe(202)
    const get = { method: "GET", path: `/channels/${api.channel}` }
    check(await api.send(get), get, { status: 200, body: { data: { registrations: 1 } } })
  })
}

const testLog = (login: Login): void => {
  it("writes one line for a request, with its fields and without a secret", {
    timeout: 60_000
  }, async () => {
    await using nats = await startNats()
    await using own = await startFor(login, nats.url)
    const { service } = own
    const api = new Api(own.target)
    const { endpoint } = await api.stored("very-secret-address")
    await sendForLog(api, endpoint)
    const isLogin = ({ path }: Line) => String(path).startsWith("/v1/portier/")
    const lines = () =>
      linesOf(service.output()).filter(
        (line) => line.msg.endsWith("request.summary") && !isLogin(line)
      )
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
      authn_type: login.policy,
      t: expect.any(Number),
      time: expect.any(Number)
    })
    expect(list?.["querystring"]).toBe("endpoint=…&_limit=1&…&_token=…")
    expect(bad).toMatchObject({ code: 400, errno: 109 })
    const kinds = lines().map(({ msg }) => msg.replace(".summary", ""))
    expect(kinds.join(" ")).toBe("request request request request subrequest subrequest request")
    expect(batch).toMatchObject({ batch_size: 2, code: 200 })
    expect(root).toMatchObject({ path: "/v1/", uid: api.userId(), authn_type: login.policy })
    expect(nothing).toMatchObject({ path: "/v1/nothing", code: 404, errno: 111 })
    const secrets = [
      ...(await secretsOf(api)),
      "very-secret-address",
      keys.auth,
      keys.p256dh,
      encodeURIComponent(endpoint)
    ]
    expect(secrets.length).toBeGreaterThan(4)
    for (const secret of secrets) expect(service.output()).not.toContain(secret)
  })
}

const testShutdown = (login: Login): void => {
  it("leaves in time with a connection open, and finishes the request in hand", {
    timeout: 60_000
  }, async () => {
    await using nats = await startNats()
    await using _projector = await startOwn(nats.url, { roles: "projection" })
    await using own = await startFor(login, nats.url, 1, { roles: "gateway" })
    const { service } = own
    const api = new Api(own.target)
    const agent = new Agent({ keepAlive: true })
    const body = JSON.stringify({ data: api.subscription() })
    const headers = {
      ...(await api.headersOf(api.me)),
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
        void expect
          .poll(service.output)
          .toContain('"msg":"stopping"')
          .then(() => sent.end(body))
      }
    )
    expect(await inHand).toBe(201)
    expect(await stopped).toBe(0)
    // An open keep-alive connection would delay the end by 10 s.
    expect(performance.now() - began).toBeLessThan(8_000)
    agent.destroy()
  })
}

/** Gateways with the policy of a login, in trouble. */
export const testTrouble = (login: Login): void => {
  testOutage(login)
  testLateProjector(login)
  testLog(login)
  testShutdown(login)
}
