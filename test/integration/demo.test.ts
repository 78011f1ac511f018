// The demo of `make run`: it is served in development only, each file with a strict policy.
import { readdirSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { expectNoDemo, startDevelopment, statusesOf } from "#test/development.ts"
import { startNats } from "#test/nats.ts"
import { startService } from "#test/service.ts"
import { useShared } from "#test/use-service.ts"

const statusOf = async (url: string) => (await fetch(url)).status

const shared = useShared(async (opened) => ({ service: opened.use(await startDevelopment()) }))

describe("make run", () => {
  it("says what is open where anybody is a user", async () => {
    const { service } = shared
    const authorization = `Basic ${btoa("visitor:secret")}`
    expect(await statusesOf(service, authorization)).toEqual({
      publish: 202,
      loopback: 201,
      metrics: 200
    })
    expect(service.output()).toMatch(/Publishers +every user$/m)
    expect(service.output()).toMatch(
      /Open to everybody +endpoints on this machine, metrics, any number of users, channels/
    )
  })
})

describe("the demo", () => {
  it("is what the start prints first", () => {
    const [, url] = /Bellcast is ready\..*\n\n +(http\S+)\n/.exec(shared.service.output()) ?? []
    expect(url).toBe(`${shared.service.url}/demo/`)
  })

  it("has files of its own types, without anything inline", async () => {
    const page = await fetch(`${shared.service.url}/demo/`)
    expect(page.headers.get("content-type")).toBe("text/html; charset=UTF-8")
    const text = await page.text()
    const names = [...text.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, name]) => name!)
    expect(names).toContain("demo.js")
    for (const name of readdirSync("src/browser/demo"))
      expect(await statusOf(`${shared.service.url}/demo/${name}`), name).toBe(200)
    expect(text).not.toMatch(/<style|style=|\son\w+=|<script(?![^>]* src=)/)
  })

  it("allows its page and its worker nothing but files and requests of the service", async () => {
    const both = [
      ...["default-src 'none'", "script-src 'self'", "connect-src 'self'", "img-src 'self'"],
      ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"]
    ]
    const page = [
      ...["style-src 'self'", "worker-src 'self'", "require-trusted-types-for 'script'"],
      "trusted-types demo"
    ]
    for (const name of ["", "demo.js", "worker.js"]) {
      const { headers } = await fetch(`${shared.service.url}/demo/${name}`)
      const directives = headers.get("content-security-policy")?.split("; ")
      const expected = name === "worker.js" ? both : [...both, ...page]
      expect(directives?.toSorted(), name).toEqual(expected.toSorted())
    }
  })

  it("is not sent again to who has it, and changed by nobody", async () => {
    for (const name of ["", "demo.js"]) {
      const url = `${shared.service.url}/demo/${name}`
      const etag = (await fetch(url)).headers.get("etag")!
      const again = await fetch(url, { headers: { "if-none-match": etag } })
      expect([again.status, await again.text()]).toEqual([304, ""])
      const refused = await fetch(url, { method: "POST" })
      expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS"])
    }
  })

  it("has a slash, which relative addresses need", async () => {
    const { status, url } = await fetch(`${shared.service.url}/demo`)
    expect({ status, url }).toEqual({ status: 200, url: `${shared.service.url}/demo/index.html` })
  })

  it("plays the push service of made-up browsers: 410; 429 for a while, then 201", async () => {
    const push = (answer: string) =>
      fetch(`${shared.service.url}/demo/push/${answer}/a`, { method: "POST", body: "encrypted" })
    expect((await push("410")).status).toBe(410)
    const throttled = await push(String(Date.now() + 60_000))
    expect(throttled.status).toBe(429)
    expect(Number(throttled.headers.get("retry-after"))).toBeCloseTo(60, -1)
    expect((await push(String(Date.now() - 1))).status).toBe(201)
  })

  it("is no part of the API description", async () => {
    expect(await (await fetch(`${shared.service.url}/__api__`)).text()).not.toContain("/demo")
  })
})

it("is missing where --development is not given", async () => {
  await using nats = await startNats()
  await using usual = await startService({ natsUrl: nats.url })
  await expectNoDemo(usual)
})
