// The responses of a gateway to bytes that no client library sends.
import { connect } from "node:net"
import { afterAll, beforeAll, expect, it } from "vitest"
import { startNats } from "../../support/nats.ts"
import type { Service } from "../../support/service.ts"
import { Api } from "../api.ts"
import type { Login } from "../logins/login.ts"
import { startFor } from "../target.ts"

/** Everything that the server sends on a connection after a text. */
const raw = async ({ port }: { port: number }, text: string) => {
  const socket = connect(port, "127.0.0.1")
  socket.write(text)
  let response = ""
  for await (const chunk of socket.setEncoding("utf8")) response += chunk
  return response
}

const refused: ReadonlyArray<readonly [name: string, lines: ReadonlyArray<string>]> = [
  ["two Hosts", ["Host: a", "Host: b"]],
  ["the same Host twice", ["Host: a", "host: a"]],
  ["a Host and an empty one", ["Host: a", "Host:"]],
  ["a Host with a path", ["Host: evil.example/path?x=<y>"]],
  ["a Host with a user", ["Host: user@a"]],
  ["two Hosts in one line", ["Host: a b"]],
  ["a Host whose port is none", ["Host: a:x"]],
  ["a Host in letters beyond ASCII", ["Host: \u00e9"]],
  ["two Authorizations", ["Host: a", "Authorization: Basic YTpi", "Authorization: Bearer b"]],
  ["one Authorization twice", ["Host: a", "Authorization: Basic YTpi", "authorization: Basic YTpi"]]
]

/** Bytes on a connection of a gateway with the policy of a login. */
export const testWire = (login: Login): void => {
  const stack = new AsyncDisposableStack()
  let service: Service
  let api: Api
  beforeAll(async () => {
    const nats = stack.use(await startNats())
    const env = { BELLCAST_CORS_ORIGINS: "https://*.ok.example" }
    const own = stack.use(await startFor(login, nats.url, 1, { roles: "gateway", env }))
    service = own.service
    api = new Api(own.target)
  })
  afterAll(() => stack.disposeAsync())

  for (const [name, lines] of refused) {
    it.for(["1.1", "1.0"])(`with ${name} are refused, in HTTP/%s`, async (version) => {
      const head = [`GET /v1/ HTTP/${version}`, ...lines, "Connection: close"]
      const response = await raw(service, `${head.join("\r\n")}\r\n\r\n`)
      expect(response).toMatch(/^HTTP\/1.1 400 Bad Request\r\n.*"errno":107/s)
    })
  }

  it.for([
    ["1.0", []],
    ["1.0", ["Host: a"]],
    ["1.1", ["Host: push.example.org:8080"]],
    ["1.1", ["Host: [::1]:80"]],
    // An empty Host is valid (RFC 9110 section 7.2).
    ["1.1", ["Host:"]]
  ] as const)("are a request in HTTP/%s with %j", async ([version, lines]) => {
    const head = [`GET /v1/ HTTP/${version}`, ...lines, "Connection: close"]
    expect(await raw(service, `${head.join("\r\n")}\r\n\r\n`)).toMatch(/^HTTP\/1.1 200 OK\r\n/)
  })

  const beat = "GET /v1/__lbheartbeat__ HTTP/1.1\r\nHost: a\r\n\r\n"
  const nothing = "GET /v1/nothing HTTP/1.1\r\nHost: a\r\n\r\n"
  const statuses = (responses: string) =>
    [...responses.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status))

  it("get responses although the client has closed its half of the connection", async () => {
    const socket = connect(service.port, "127.0.0.1")
    socket.end(beat)
    let response = ""
    for await (const chunk of socket.setEncoding("utf8")) response += chunk
    expect(statuses(response)).toEqual([200])
  })

  it("get responses in their order, CONNECT too", async () => {
    const connectLine = "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"
    expect(statuses(await raw(service, beat + nothing + connectLine))).toEqual([200, 404, 404])
  })

  it("get responses up to the limit of waiting requests", async () => {
    const sent = statuses(await raw(service, beat.repeat(200)))
    expect(sent.length).toBeGreaterThanOrEqual(64)
    expect(sent.length).toBeLessThan(200)
    expect(new Set(sent)).toEqual(new Set([200]))
  })

  it("that are refused for their Host can be read by a page that may call", async () => {
    const head = "GET /v1/ HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n"
    expect(await raw(service, `${head}Origin: https://page.ok.example\r\n\r\n`)).toMatch(
      /^HTTP\/1.1 400 .*\r\nAccess-Control-Allow-Origin: https:\/\/page.ok.example\r\n/s
    )
    expect(await raw(service, `${head}Origin: https://evil.example\r\n\r\n`)).not.toMatch(
      /Access-Control-Allow-Origin/
    )
  })

  it("asks for a body only if it can take it", { timeout: 60_000 }, async () => {
    const credentials = Object.entries(await api.headersOf(api.me))
    const lines = credentials.map(([name, value]) => `${name}: ${value}`)
    const head = ["Host: a", "Connection: close", ...lines, "Expect: 100-continue"].join("\r\n")
    const post = (version: string, length: number, body = "") =>
      raw(
        service,
        `POST /v1/subscriptions HTTP/${version}\r\n${head}\r\n` +
          `Content-Length: ${length}\r\n\r\n${body}`
      )
    expect(await post("1.1", 2, "{}")).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 400 /)
    // The name of 413 in RFC 9110. Node.js has an older one.
    expect(await post("1.1", 16_385)).toMatch(
      /^HTTP\/1.1 413 Content Too Large\r\n.*"error_code":"body-too-large","error":"Content Too/s
    )
    // An HTTP/1.0 client takes the first response for the final one.
    expect(await post("1.0", 2, "{}")).toMatch(/^HTTP\/1.1 400 /)
  })

  it("responds to invalid HTTP with its own errors", { timeout: 60_000 }, async () => {
    const send = async (text: string) => {
      const response = await raw(service, text)
      const [head = "", body = ""] = response.split("\r\n\r\n")
      expect(head).toMatch(/^Date: .* GMT\r$/m)
      expect(head).toMatch(/^Cache-Control: no-cache, no-store\r$/m)
      return {
        status: Number(head.split(" ")[1]),
        body: JSON.parse(body) as unknown,
        allow: /^Allow: (.*)\r$/m.exec(head)?.[1]
      }
    }
    expect(await send("nonsense\r\n\r\n")).toMatchObject({
      status: 400,
      body: { code: 400, errno: 107, error: "Bad Request" }
    })
    expect(await send(`GET /${"x".repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`)).toMatchObject({
      status: 431,
      body: { code: 431, errno: 107 }
    })
    const closing = "Host: a\r\nConnection: close\r\n\r\n"
    // Node.js itself would respond differently, without a body, or not at all.
    expect(await send(`BREW /v1/batch HTTP/1.1\r\n${closing}`)).toMatchObject({
      status: 405,
      body: { errno: 115 },
      allow: "POST, OPTIONS"
    })
    expect(await send(`get /v1/ HTTP/1.1\r\n${closing}`)).toMatchObject({
      status: 405,
      allow: "GET, HEAD, DELETE, OPTIONS"
    })
    expect(await send(`BREW /v1/tea HTTP/1.1\r\n${closing}`)).toMatchObject({
      status: 404,
      body: { errno: 111 }
    })
    // Requests without anything odd.
    await expect
      .poll(() => service.output())
      .toMatch(/"method":"BREW","path":"\/v1\/batch".*"code":405/)
    // Bytes after a request are another request. Their error does not affect the first one.
    expect(await raw(service, "GET /v1/__lbheartbeat__ HTTP/1.1\r\nHost: a\r\n\r\n{}")).toMatch(
      / 200 OK.* 400 Bad Request/s
    )
    expect(await send(`CONNECT a:1 HTTP/1.1\r\n${closing}`)).toMatchObject({
      status: 404,
      body: { errno: 116 }
    })
    expect(await send("GET /v1/ HTTP/1.1\r\nConnection: close\r\n\r\n")).toMatchObject({
      status: 400,
      body: { code: 400, errno: 107 }
    })
    expect(await send(`GET /v1/ HTTP/1.1\r\nExpect: tea\r\n${closing}`)).toMatchObject({
      status: 200,
      body: { project_name: "bellcast" }
    })
  })
}
