// src/browser/client.js in a real Firefox: how often it asks the service, what it says meanwhile,
// and its codes for each way in which a site or the service fails.
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import type { Page } from "puppeteer-core"
import { describe, expect, it } from "vitest"
import webpush from "web-push"
import { basic, call, until } from "#test/client.ts"
import { vapid } from "#test/service.ts"
import { firefoxPath } from "../browser.ts"
import { Stage } from "./stage.ts"

describe.skipIf(firefoxPath === undefined)("client.js checks", () => {
  const stage = new Stage()

  /** Records method and path of requests, until the page is left. */
  const watch = (page: Page) =>
    page.evaluate(`{
      const { fetch } = window
      window.requests = []
      window.fetch = (url, options) => {
        requests.push(options.method + " " + new URL(url).pathname)
        return fetch(url, options)
      }
    }`)
  const posts = "requests.filter((each) => each === 'POST /v1/subscriptions').length"

  /** A load; how often the subscription was sent to the service, and a token asked for. */
  const load = async (page: Page, change = "undefined", url = stage.service.url) => {
    await page.reload()
    await watch(page)
    await page.evaluate(change)
    const options = JSON.stringify({ url, user: stage.user, worker: "/worker.js" })
    await page.evaluate(`device.connect(${options}, ["${basic(stage.user)}"])`)
    await stage.expect(page, "on")
    return (await page.evaluate(`[${posts}, device.tokensAsked()]`)) as ReadonlyArray<number>
  }

  it("once a day where nothing changed, without a token in between", async () => {
    const page = await stage.enabled()
    for (const [hours, expected] of [
      [0, [0, 0]],
      [1, [0, 0]],
      [23, [0, 0]],
      [25, [1, 1]]
    ] as const) {
      await stage.age(page, hours)
      expect([hours, await load(page)]).toEqual([hours, expected])
    }
    expect(await load(page)).toEqual([0, 0])
  })

  it("at once where the browser speaks another language", async () => {
    const page = await stage.enabled()
    const speak = (name: string) =>
      `{ Object.defineProperty(navigator, "language", { value: "${name}" }) }`
    expect(await load(page, speak("fr"))).toEqual([1, 1])
    expect((await stage.list())[0].locale).toBe("fr")
    expect(await load(page, speak("fr"))).toEqual([0, 0])
  })

  it("stores a label where there is none, and leaves that of the site", async () => {
    const page = await stage.enabled()
    const [{ label, ...rest }] = await stage.list()
    expect(label).toBe("Firefox on Linux")
    const store = (data: object) =>
      call(stage.service.url, "PUT", `/subscriptions/${rest.id}`, stage.user, { data })
    await store({ ...rest, label: "Kitchen", locale: "fr" })
    await page.evaluate("push.check()")
    expect(await stage.list()).toMatchObject([{ label: "Kitchen", locale: rest.locale }])
    await store(rest)
    await page.evaluate("push.check()")
    expect(await stage.list()).toMatchObject([{ label: "Firefox on Linux" }])
  })

  it("at once where the service has another address", async () => {
    const page = await stage.enabled()
    const { url } = stage.service
    expect(await load(page, undefined, url.replace("127.0.0.1", "localhost"))).toEqual([1, 1])
  })

  it("at once by check(), which brings back what the service lost", async () => {
    const page = await stage.enabled()
    await call(stage.service.url, "DELETE", "/subscriptions", stage.user)
    expect(await load(page)).toEqual([0, 0])
    expect(await stage.stored()).toEqual([])
    expect(await page.evaluate("push.check()")).toBe("on")
    expect(await stage.stored()).toEqual([await stage.endpoint(page)])
    expect(await load(page)).toEqual([0, 0])
  })

  const failing = `{
    const { fetch } = window
    window.isFailing = true
    window.fetch = async (url, options) =>
      isFailing ? new Response("", { status: 503 }) : fetch(url, options)
  }`

  it.each(["check", "enable"])("at the next load where %s() met an error", async (method) => {
    const page = await stage.enabled()
    await call(stage.service.url, "DELETE", "/subscriptions", stage.user)
    await page.evaluate(failing)
    await page.evaluate(`push.${method}()`)
    await stage.expect(page, "on", "offline")
    expect((await load(page))[0]).toBeGreaterThan(0)
    expect(await stage.stored()).toEqual([await stage.endpoint(page)])
    expect(await load(page)).toEqual([0, 0])
  })

  it.each(["check", "enable"])("again by itself where %s() met an error", async (method) => {
    const page = await stage.enabled()
    await call(stage.service.url, "DELETE", "/subscriptions", stage.user)
    await page.evaluate(failing)
    await page.evaluate(`push.${method}()`)
    await stage.expect(page, "on", "offline")
    await page.evaluate("{ window.isFailing = false }")
    await stage.becomes(page, "on")
    expect(await stage.stored()).toEqual([await stage.endpoint(page)])
  })

  it("joins at a later load the channels that are left", async () => {
    const page = await stage.enabled()
    await page.evaluate(`device.change({ join: { "${stage.user}": { late: true } } })`)
    expect(await load(page)).toEqual([0, 1])
    expect(await page.evaluate("push.channels()")).toContain("late")
  })

  it.each(["enable", "disable", "signOut", "check"])("is busy while %s() works", async (method) => {
    const page = await stage.enabled()
    await page.evaluate(`{
      const { getSubscription } = PushManager.prototype
      window.held = new Promise((resolve) => { window.release = resolve })
      PushManager.prototype.getSubscription = async function () {
        await held
        return getSubscription.call(this)
      }
      device.busy.length = 0
      window.working = push.${method}()
      undefined
    }`)
    // enable() works from the user's answer on, which the browser gives a moment later.
    const busy = await until(
      async () => (await page.evaluate("device.busy")) as ReadonlyArray<boolean>,
      ({ length }) => length > 0
    )
    expect(busy).toEqual([true])
    await page.evaluate("release(), working")
    expect(await page.evaluate("[push.busy, device.busy.at(-1)]")).toEqual([false, false])
  })

  it("is not busy at a load", async () => {
    const page = await stage.page()
    await stage.connect(page)
    expect(await page.evaluate("push.busy")).toBe(false)
  })

  const network = "async () => { await fetch('http://127.0.0.1:1/') }"
  it.each([
    ["gives null, as the session has ended,", "() => null", "login", false],
    ["gives a page for the login", "() => '<html>log in</html>'", "login", false],
    ["finds no network", network, "offline", true],
    ["fails", "async () => { throw new Error('/push-token: 500') }", "token", true]
  ])("says of a token that %s the code", async (_, token, code, retryable) => {
    const page = await stage.page()
    const options = JSON.stringify({
      url: stage.service.url,
      user: stage.user,
      worker: "/worker.js"
    })
    await page.evaluate(`import("/client.js").then(async ({ connect }) => {
      window.push = await connect({ ...${options}, token: ${token} })
      await push.enable()
    })`)
    expect((await stage.shown(page)).error).toEqual({ code, retryable })
  })

  it.each([
    [401, "login", false],
    [403, "forbidden", false],
    [404, "service", false],
    [413, "limit", false],
    [429, "limit", false],
    [500, "service", true],
    [502, "offline", true],
    [503, "offline", true],
    [504, "offline", true],
    [507, "limit", true]
  ])("says of the status %i the code %s", async (status, code, retryable) => {
    await using stack = new AsyncDisposableStack()
    const headers = { "access-control-allow-origin": "*", "access-control-allow-headers": "*" }
    const server = createServer(({ method }, response) =>
      response.writeHead(method === "OPTIONS" ? 200 : status, headers).end("<h1>Sorry</h1>")
    )
    stack.defer(() => void server.close(() => {}))
    stack.defer(() => server.closeAllConnections())
    await once(server.listen(0, "127.0.0.1"), "listening")
    const page = await stage.page()
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
    const options = JSON.stringify({ url, user: stage.user, worker: "/worker.js" })
    await page.evaluate(`device.connect(${options}, ["${basic(stage.user)}"])`)
    await page.evaluate("push.enable()")
    expect((await stage.shown(page)).error).toEqual({ code, retryable })
  })

  // The last one: a service does not start without a key that it had.
  it("at once where the service has another key", async () => {
    const page = await stage.enabled()
    const next = webpush.generateVAPIDKeys()
    await stage.service.kill()
    await stage.startService({
      BELLCAST_VAPID_PUBLIC_KEY: next.publicKey,
      BELLCAST_VAPID_PRIVATE_KEY: next.privateKey,
      BELLCAST_VAPID_FORMER_KEYS: `${vapid.publicKey}:${vapid.privateKey}`
    })
    // The browser keeps the key for five minutes.
    const anew = `{
      const { fetch } = window
      window.fetch = (url, options) => fetch(url, { ...options, cache: "reload" })
    }`
    expect((await load(page, anew))[0]).toBeGreaterThan(0)
    expect((await stage.record(page)).key).toBe(next.publicKey)
  })
})
