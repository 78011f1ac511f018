// What a gateway answers to bytes that a client library would not send.
import { connect } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { startNats } from "../support/nats.ts"
import type { Service } from "../support/service.ts"
import { basic } from "./api.ts"
import { startOwn, targetUrl } from "./target.ts"

/** All that a connection answers to a text before it closes. */
const told = async ({ port }: { port: number }, text: string) => {
  const socket = connect(port, "127.0.0.1")
  socket.write(text)
  let answer = ""
  for await (const chunk of socket.setEncoding("utf8")) answer += chunk
  return answer
}

const hosts: ReadonlyArray<readonly [name: string, lines: ReadonlyArray<string>]> = [
  ["two Hosts", ["Host: a", "Host: b"]],
  ["the same Host twice", ["Host: a", "host: a"]],
  ["a Host and an empty one", ["Host: a", "Host:"]],
  ["a Host with a path", ["Host: evil.example/path?x=<y>"]],
  ["a Host with a user", ["Host: user@a"]],
  ["two Hosts in one line", ["Host: a b"]],
  ["a Host whose port is none", ["Host: a:x"]],
  ["a Host in letters beyond ASCII", ["Host: \u00e9"]]
]

describe.skipIf(targetUrl !== undefined)("bytes on a connection", () => {
  const stack = new AsyncDisposableStack()
  let service: Service
  beforeAll(async () => {
    const nats = stack.use(await startNats())
    const env = { BELLCAST_CORS_ORIGINS: "https://*.ok.example" }
    service = stack.use(await startOwn(nats.url, { roles: "gateway", env }))
  })
  afterAll(() => stack.disposeAsync())

  for (const [name, lines] of hosts) {
    it.for(["1.1", "1.0"])(`with ${name} are refused, in HTTP/%s`, async (version) => {
      const head = [`GET /v1/ HTTP/${version}`, ...lines, "Connection: close"]
      const answer = await told(service, `${head.join("\r\n")}\r\n\r\n`)
      expect(answer).toMatch(/^HTTP\/1.1 400 Bad Request\r\n.*"errno":107/s)
    })
  }

  it.for([
    ["1.0", []],
    ["1.0", ["Host: a"]],
    ["1.1", ["Host: push.example.org:8080"]],
    ["1.1", ["Host: [::1]:80"]],
    // The target of a request may have no host (RFC 9110 section 7.2).
    ["1.1", ["Host:"]]
  ] as const)("are a request in HTTP/%s with %j", async ([version, lines]) => {
    const head = [`GET /v1/ HTTP/${version}`, ...lines, "Connection: close"]
    expect(await told(service, `${head.join("\r\n")}\r\n\r\n`)).toMatch(/^HTTP\/1.1 200 OK\r\n/)
  })

  const beat = "GET /v1/__lbheartbeat__ HTTP/1.1\r\nHost: a\r\n\r\n"
  const nothing = "GET /v1/nothing HTTP/1.1\r\nHost: a\r\n\r\n"
  const statuses = (answers: string) =>
    [...answers.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status))

  it("are answered although the client has closed its half of the connection", async () => {
    const socket = connect(service.port, "127.0.0.1")
    socket.end(beat)
    let answer = ""
    for await (const chunk of socket.setEncoding("utf8")) answer += chunk
    expect(statuses(answer)).toEqual([200])
  })

  it("are answered in their order, CONNECT too", async () => {
    const connectLine = "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"
    expect(statuses(await told(service, beat + nothing + connectLine))).toEqual([200, 404, 404])
  })

  it("are answered as far as requests may wait, when they are more", async () => {
    const answered = statuses(await told(service, beat.repeat(200)))
    expect(answered.length).toBeGreaterThanOrEqual(64)
    expect(answered.length).toBeLessThan(200)
    expect(new Set(answered)).toEqual(new Set([200]))
  })

  it("that are refused for their Host can be read by a page that may call", async () => {
    const head = "GET /v1/ HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n"
    expect(await told(service, `${head}Origin: https://page.ok.example\r\n\r\n`)).toMatch(
      /^HTTP\/1.1 400 .*\r\nAccess-Control-Allow-Origin: https:\/\/page.ok.example\r\n/s
    )
    expect(await told(service, `${head}Origin: https://evil.example\r\n\r\n`)).not.toMatch(
      /Access-Control-Allow-Origin/
    )
  })

  it("asks for a body only if it can take it", { timeout: 60_000 }, async () => {
    const head = `Host: a\r\nConnection: close\r\nAuthorization: ${basic("a:b")}\r\nExpect: 100-continue`
    const post = (version: string, length: number, body = "") =>
      told(
        service,
        `POST /v1/subscriptions HTTP/${version}\r\n${head}\r\nContent-Length: ${length}\r\n\r\n${body}`
      )
    expect(await post("1.1", 2, "{}")).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 400 /)
    // RFC 9110 names 413 so; Node's own name for it is older.
    expect(await post("1.1", 16_385)).toMatch(
      /^HTTP\/1.1 413 Content Too Large\r\n.*"errno":113,"error":"Content Too Large"/s
    )
    // To a client of HTTP/1.0 the first answer is the last.
    expect(await post("1.0", 2, "{}")).toMatch(/^HTTP\/1.1 400 /)
  })

  it("answers what is no request in the shape of its errors", { timeout: 60_000 }, async () => {
    const tell = async (text: string) => {
      const answer = await told(service, text)
      const [head = "", body = ""] = answer.split("\r\n\r\n")
      return {
        status: Number(head.split(" ")[1]),
        body: JSON.parse(body) as unknown,
        allow: /^Allow: (.*)\r$/m.exec(head)?.[1]
      }
    }
    expect(await tell("nonsense\r\n\r\n")).toMatchObject({
      status: 400,
      body: { code: 400, errno: 107, error: "Bad Request" }
    })
    expect(await tell(`GET /${"x".repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`)).toMatchObject({
      status: 431,
      body: { code: 431, errno: 107 }
    })
    const closing = "Host: a\r\nConnection: close\r\n\r\n"
    // What Node by itself would answer otherwise, or without a body, or not at all.
    expect(await tell(`BREW /v1/batch HTTP/1.1\r\n${closing}`)).toMatchObject({
      status: 405,
      body: { errno: 115 },
      allow: "POST, OPTIONS"
    })
    expect(await tell(`get /v1/ HTTP/1.1\r\n${closing}`)).toMatchObject({
      status: 405,
      allow: "GET, HEAD, OPTIONS"
    })
    expect(await tell(`BREW /v1/tea HTTP/1.1\r\n${closing}`)).toMatchObject({
      status: 404,
      body: { errno: 111 }
    })
    // They are requests like all others.
    await expect
      .poll(() => service.output())
      .toMatch(/"method":"BREW","path":"\/v1\/batch".*"code":405/)
    // What follows a request is another one, and its fault not that of the first.
    expect(await told(service, "GET /v1/__lbheartbeat__ HTTP/1.1\r\nHost: a\r\n\r\n{}")).toMatch(
      / 200 OK.* 400 Bad Request/s
    )
    expect(await tell(`CONNECT a:1 HTTP/1.1\r\n${closing}`)).toMatchObject({
      status: 404,
      body: { errno: 116 }
    })
    expect(await tell("GET /v1/ HTTP/1.1\r\nConnection: close\r\n\r\n")).toMatchObject({
      status: 400,
      body: { code: 400, errno: 107 }
    })
    expect(await tell(`GET /v1/ HTTP/1.1\r\nExpect: tea\r\n${closing}`)).toMatchObject({
      status: 200,
      body: { project_name: "bellcast" }
    })
  })
})
