// The demo is served in development only, each file with a strict policy.
import { readdirSync } from "node:fs"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { startDevelopment } from "#test/development.ts"
import { startNats } from "#test/nats.ts"
import { type Service, startService } from "#test/service.ts"

const statusOf = async (url: string) => (await fetch(url)).status

describe("the demo", () => {
  let service: Service
  beforeAll(async () => {
    service = await startDevelopment()
  })
  afterAll(() => service?.[Symbol.asyncDispose]())

  it("is what the start prints first", () => {
    const [, url] = /Bellcast is ready\..*\n\n +(http\S+)\n/.exec(service.output()) ?? []
    expect(url).toBe(`${service.url}/demo/`)
  })

  it("has files of its own types, without anything inline", async () => {
    const page = await fetch(`${service.url}/demo/`)
    expect(page.headers.get("content-type")).toBe("text/html; charset=UTF-8")
    const text = await page.text()
    const names = [...text.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, name]) => name!)
    expect(names).toContain("demo.js")
    for (const name of readdirSync("src/browser/demo"))
      expect(await statusOf(`${service.url}/demo/${name}`), name).toBe(200)
    expect(text).not.toMatch(/<style|style=|\son\w+=|<script(?![^>]* src=)/)
  })

  it("allows its page and its worker nothing but files and requests of the service", async () => {
    for (const name of ["", "demo.js", "worker.js"]) {
      const { headers } = await fetch(`${service.url}/demo/${name}`)
      const policy = headers.get("content-security-policy") ?? ""
      expect(policy).toMatch(/^default-src 'none'; script-src 'self'; connect-src 'self';/)
      expect(policy).not.toMatch(/unsafe|data:|http|\*/)
    }
  })

  it("has a slash, which relative addresses need", async () => {
    const { status, url } = await fetch(`${service.url}/demo`)
    expect({ status, url }).toEqual({ status: 200, url: `${service.url}/demo/index.html` })
  })

  it("plays the push service of made-up browsers: 410; 429 for a while, then 201", async () => {
    const push = (answer: string) =>
      fetch(`${service.url}/demo/push/${answer}/a`, { method: "POST", body: "encrypted" })
    expect((await push("410")).status).toBe(410)
    const throttled = await push(String(Date.now() + 60_000))
    expect(throttled.status).toBe(429)
    expect(Number(throttled.headers.get("retry-after"))).toBeCloseTo(60, -1)
    expect((await push(String(Date.now() - 1))).status).toBe(201)
  })

  it("is no part of the API description", async () => {
    expect(await (await fetch(`${service.url}/__api__`)).text()).not.toContain("/demo")
  })
})

it("is missing where --development is not given, or users are verified", async () => {
  await using nats = await startNats()
  await using usual = await startService({ natsUrl: nats.url })
  await using closed = await startDevelopment({
    BELLCAST_AUTH_POLICIES: "signed",
    BELLCAST_AUTH_SIGNED_SECRETS: "the-secret-of-the-site-and-of-Bellcast",
    BELLCAST_AUTH_SIGNED_AUDIENCE: "bellcast"
  })
  for (const { output, url } of [usual, closed]) {
    for (const path of ["demo", "demo/", "demo/demo.js", "demo/worker.js"])
      expect(await statusOf(`${url}/${path}`)).toBe(404)
    expect((await fetch(`${url}/demo/push/410/a`, { method: "POST" })).status).toBe(404)
    expect(output()).not.toMatch(/http\S+demo/)
  }
})
