// Additions of `make run` to the service: the console with "Try it", and a push service of made-up
// browsers. In development only.
import { describe, expect, it } from "vitest"
import { expectNoDemo, startDevelopment, statusesOf } from "#test/development.ts"
import { startNats } from "#test/nats.ts"
import { startService } from "#test/service.ts"
import { useShared } from "#test/use-service.ts"

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

describe("try it", () => {
  it("is what the start prints first", () => {
    const [, url] = /Bellcast is ready\..*\n\n +(http\S+)\n/.exec(shared.service.output()) ?? []
    expect(url).toBe(`${shared.service.url}/console/#/try`)
  })

  it("is where the page of earlier versions leads", async () => {
    for (const path of ["demo", "demo/", "demo/index.html"]) {
      const { headers, status } = await fetch(`${shared.service.url}/${path}`, {
        redirect: "manual"
      })
      expect([path, status, headers.get("location")]).toEqual([
        path,
        307,
        `${shared.service.url}/console/#/try`
      ])
    }
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

describe("the console of make run", () => {
  it("is on every address of the service, and lets anybody in by a name", async () => {
    const { service } = shared
    const config = await (await fetch(`${service.url}/console/config.json`)).json()
    expect(config).toMatchObject({
      development: true,
      origin: new URL(service.url).origin,
      logins: [{ policy: "basicauth", kind: "basicauth" }]
    })
    const page = await fetch(`${service.url}/console`)
    expect([page.status, page.url]).toEqual([200, `${service.url}/console/`])
    expect(await page.text()).not.toMatch(/<style|style=|\son\w+=|<script(?![^>]* src=)/)
  })

  it("may show a push in this browser, by a worker of its own", async () => {
    const policyOf = async (name: string) => {
      const { headers, status } = await fetch(`${shared.service.url}/console/${name}`)
      return `${status} ${headers.get("content-security-policy")}`
    }
    expect(await policyOf("")).toMatch(/^200 .*; worker-src 'self'; .*; trusted-types console$/)
    expect(await policyOf("worker.js")).toMatch(/^200 default-src 'none'; script-src 'self';/)
    expect(await policyOf("worker.js")).not.toMatch(/trusted-types/)
  })
})

it("is missing where --development is not given", async () => {
  await using nats = await startNats()
  await using usual = await startService({ natsUrl: nats.url })
  await expectNoDemo(usual)
})
