// src/browser/client.js in a real Firefox: which requests it sends, and answers that are not what
// it asked for.
import { describe, expect, it } from "vitest"
import { call, until } from "#test/client.ts"
import { firefoxPath } from "../browser.ts"
import { Stage } from "./stage.ts"

describe.skipIf(firefoxPath === undefined)("client.js and the service", () => {
  const stage = new Stage()

  it("checks again when the user presses the button, however short ago it did", async () => {
    const page = await stage.enabled()
    await call(stage.service.url, "DELETE", "/subscriptions", stage.user)
    await page.evaluate("push.enable()")
    await stage.expect(page, "on")
    expect(await stage.stored()).toEqual([await stage.endpoint(page)])
  })

  it("has the key and the worker before anybody presses the button", async () => {
    const page = await stage.load()
    await stage.expect(page, "off")
    const asked = () =>
      page.evaluate(`performance
        .getEntriesByType("resource")
        .map(({ name }) => new URL(name).pathname)
        .filter((path) => path.startsWith("/v1/"))`) as Promise<ReadonlyArray<string>>
    expect(await until(asked, ({ length }) => length > 0)).toEqual(["/v1/vapid-public-key"])
    const { state } = (await page.evaluate(`(async () => {
      const { active } = await navigator.serviceWorker.getRegistration("/")
      return { state: active.state }
    })()`)) as { readonly state: string }
    expect(state).toBe("activated")
  })

  it("finds its subscription by either spelling of Google's endpoints", async () => {
    const page = await stage.load()
    // A real one needs Chrome with a flag.
    const endpoint = `https://fcm.googleapis.com/wp/${stage.user}`
    await page.evaluate(`{
      const { toJSON } = PushSubscription.prototype
      const endpoint = "${endpoint}"
      PushSubscription.prototype.toJSON = function () { return { ...toJSON.call(this), endpoint } }
      Object.defineProperty(PushSubscription.prototype, "endpoint", { get: () => endpoint })
      undefined
    }`)
    await page.evaluate("push.enable()")
    await stage.expect(page, "on")
    expect(await stage.stored()).toEqual([endpoint])
    await page.evaluate("push.disable()")
    await stage.expect(page, "off")
    expect(await stage.stored()).toEqual([])
  })

  it("checks again when the clock was ahead at the last check", async () => {
    const page = await stage.enabled()
    await page.evaluate("device.change({ checked: Date.now() + 30 * 86_400_000 })")
    await call(stage.service.url, "DELETE", "/subscriptions", stage.user)
    await stage.reload(page)
    await stage.expect(page, "on")
    expect(await stage.stored()).toEqual([await stage.endpoint(page)])
  })

  it.each([
    ["a page to log in", "<!doctype html><h1>Hotel</h1>"],
    ["JSON of somebody else", '{"login":"required"}'],
    ["JSON without members", "null"],
    ["nothing", ""]
  ])("says service for an answer 200 that is %s, and checks again later", async (_, text) => {
    const page = await stage.enabled()
    await stage.age(page)
    await page.reload()
    await page.evaluate(`{
      window.real = fetch
      window.fetch = async () => new Response(${JSON.stringify(text)})
    }`)
    await stage.connect(page)
    expect(await stage.shown(page)).toEqual({
      state: "on",
      error: { code: "service", retryable: true }
    })
    for (const wish of ["join('a')", "leave('a')", "channels()"])
      expect(await page.evaluate(`push.${wish}.catch(({ code }) => code)`)).toBe("service")
    await page.evaluate("push.disable()")
    expect(await stage.endpoint(page)).toBeNull()
    const { former } = await stage.record(page)
    expect(former).toEqual({ [stage.user]: (await stage.stored())[0] })
    await page.evaluate("window.fetch = real; dispatchEvent(new Event('online'))")
    await stage.becomes(page, "off")
    expect(await stage.stored()).toEqual([])
  })

  it("tries once more by itself, and after each wish anew", async () => {
    const page = await stage.enabled()
    await stage.age(page)
    await page.reload()
    await page.evaluate(`{
      const { setTimeout: later } = window
      window.real = fetch
      window.tried = 0
      window.delays = []
      window.fetch = async () => {
        tried += 1
        throw new TypeError("no network")
      }
      window.setTimeout = (task, millis) => {
        delays.push(millis)
        return later(task, millis)
      }
    }`)
    await stage.connect(page)
    await stage.expect(page, "on", "offline")
    await until(
      () => page.evaluate("tried"),
      (tried) => tried === 2
    )
    // The network is back before the client tries once more, however slow the machine is.
    const disabled = await page.evaluate(`push.disable().then(() => {
      window.fetch = real
      return device.shown()
    })`)
    expect(disabled).toEqual({ state: "off", error: { code: "offline", retryable: true } })
    // The first failure and the wish's; none after the second failure.
    expect(await page.evaluate("delays.filter((millis) => millis === 2_000).length")).toBe(2)
    await stage.becomes(page, "off")
    expect(await stage.stored()).toEqual([])
  })

  it("keeps the channels that were chosen while the login is refused", async () => {
    const page = await stage.load()
    await page.evaluate(`{
      const { fetch } = window
      window.fetch = (url, options) => url.includes("/channels/")
        ? fetch(url, { ...options, headers: { authorization: "Bearer expired" } })
        : fetch(url, options)
    }`)
    await page.evaluate(`push.enable({ channels: ["a", "b"] })`)
    await stage.expect(page, "on", "login")
    await stage.reload(page)
    await stage.expect(page, "on")
    expect(await page.evaluate("push.channels()")).toEqual(["a", "b"])
  })

  it.each([[".."], ["."], [""], ["\\ud800"]])(
    "rejects the channel %j, which no URL has",
    async (name) => {
      const page = await stage.load()
      const shown = `push.join("${name}").catch((error) => [error.name, error.code, error.cause])`
      expect(await page.evaluate(shown)).toEqual(["Error", "service", 400])
    }
  )

  it("sends cookies only where no token is given, as behind a proxy with logins", async () => {
    const page = await stage.page()
    const options = JSON.stringify({ url: stage.service.url, user: null, worker: "/worker.js" })
    const sent = await page.evaluate(`(async () => {
      const { connect } = await import("/client.js")
      const { fetch } = window
      const sent = new Set()
      window.fetch = (url, { credentials }) => { sent.add(credentials); return fetch(url) }
      for (const token of [undefined, () => "Basic none"]) {
        const push = await connect({ ...${options}, token })
        await push.channels().catch(() => {})
      }
      return [...sent]
    })()`)
    expect(sent).toEqual(["same-origin", "omit"])
  })

  it.each(["constructor", "__proto__", "zoë"])("serves a user who is called %s", async (user) => {
    const page = await stage.enabled({ user })
    await page.evaluate("push.disable()")
    await stage.expect(page, "off")
    expect(await stage.stored(user)).toEqual([])
    await stage.reload(page, { user })
    await stage.expect(page, "off")
    const requests = `performance.getEntriesByType("resource").map(({ name }) => name)`
    expect(String(await page.evaluate(requests))).not.toContain("/subscriptions/")
    await page.evaluate("push.enable()")
    await stage.expect(page, "on")
    await page.evaluate("device.unsubscribe()")
    await stage.reload(page, { user })
    await stage.expect(page, "on")
    expect(await stage.stored(user)).toEqual([await stage.endpoint(page)])
  })

  // The last one: others send more requests than this limit.
  it("tries again when Retry-After says so", async () => {
    await stage.service.kill()
    await stage.startService({ BELLCAST_REQUESTS_PER_USER_PER_MINUTE_MAX: "6" })
    const page = await stage.enabled()
    const list = () => call(stage.service.url, "GET", "/subscriptions", stage.user)
    // Longer than the client waits by itself: it tries only once more.
    await until(
      list,
      ({ headers, status }) => status === 429 && Number(headers.get("retry-after")) > 3
    )
    await page.evaluate("push.disable()")
    expect(await stage.shown(page)).toEqual({
      state: "off",
      error: { code: "limit", retryable: true }
    })
    await stage.becomes(page, "off")
  })
})
