// src/browser/client.js in a real Firefox: a service that is away, logins that are refused, two
// pages at once, and workers that are slow, missing or not its own.

import { once } from "node:events"
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { describe, expect, it } from "vitest"
import { basic } from "#test/client.ts"
import { firefoxPath } from "../browser.ts"
import { Stage } from "./stage.ts"

describe.skipIf(firefoxPath === undefined)("client.js in trouble", () => {
  const stage = new Stage()
  const online = "dispatchEvent(new Event('online'))"

  it("is on while the service is away, and says so", async () => {
    const page = await stage.enabled()
    await stage.age(page)
    await stage.service.kill()
    await stage.reload(page)
    const { error, state } = await stage.shown(page)
    await stage.startService()
    expect({ error, state }).toEqual({ state: "on", error: { code: "offline", retryable: true } })
    await page.evaluate(online)
    await stage.becomes(page, "on")
  })

  it("enables by itself when the service is back, with the channels that were chosen", async () => {
    await stage.service.kill()
    const page = await stage.load()
    await page.evaluate(`push.enable({ channels: ["${stage.user}"] })`)
    const { error, state } = await stage.shown(page)
    await stage.startService()
    expect({ error, state }).toEqual({ state: "off", error: { code: "offline", retryable: true } })
    await page.evaluate(online)
    await stage.becomes(page, "on")
    expect(await page.evaluate("push.channels()")).toEqual([stage.user])
    expect(await stage.publish(page, "Late")).toEqual(["Late"])
  })

  it("goes on at the next load with what the last page could not finish", async () => {
    await stage.service.kill()
    const page = await stage.load()
    await page.evaluate(`push.enable({ channels: ["${stage.user}"] })`)
    await stage.startService()
    await stage.reload(page)
    await stage.expect(page, "on")
    expect(await page.evaluate("push.channels()")).toEqual([stage.user])
  })

  it("removes the subscription at the service where the browser does not end it", async () => {
    const page = await stage.enabled()
    await page.evaluate(`{
      window.unsubscribe = PushSubscription.prototype.unsubscribe
      PushSubscription.prototype.unsubscribe = async () => false
    }`)
    await page.evaluate("push.disable()")
    await stage.expect(page, "off", "push-service")
    expect(await stage.stored()).toEqual([])
    await page.evaluate("PushSubscription.prototype.unsubscribe = unsubscribe; undefined")
    await page.evaluate(online)
    await stage.becomes(page, "off")
    expect(await stage.endpoint(page)).toBeNull()
  })

  it("disables and signs out while the service is away, which learns of it later", async () => {
    const page = await stage.enabled()
    await stage.service.kill()
    await page.evaluate("push.disable()")
    const endpoint = await stage.endpoint(page)
    await page.evaluate("push.signOut()")
    await stage.startService()
    expect(endpoint).toBeNull()
    await stage.expect(page, "off")
    expect(await stage.stored()).toHaveLength(1)
    await stage.reload(page)
    await stage.expect(page, "off")
    expect(await stage.stored()).toEqual([])
  })

  it("asks for a token anew after a 401, once", async () => {
    const page = await stage.enabled({ tokens: ["expired", basic(stage.user)] })
    expect(await page.evaluate("device.tokensAsked()")).toBe(2)
    await page.evaluate("push.channels()")
    expect(await page.evaluate("device.tokensAsked()")).toBe(2)
  })

  it.each([["expired"], ["<html>\nlog in</html>"]])("says login for a token %j", async (token) => {
    const page = await stage.load({ tokens: [token] })
    await page.evaluate("push.enable()")
    await stage.expect(page, "off", "login")
    expect((await stage.shown(page)).error?.retryable).toBe(false)
    await stage.reload(page)
    await stage.expect(page, "on")
    expect(await stage.stored()).toEqual([await stage.endpoint(page)])
  })

  it("does it once for two pages at the same time", async () => {
    const page = await stage.enabled()
    const second = await stage.page()
    await page.evaluate("device.unsubscribe()")
    const subscriptions = () =>
      stage.autopush.browsers.reduce((sum, each) => sum + each.subscriptions.size, 0)
    const before = subscriptions()
    await Promise.all([stage.reload(page), stage.connect(second)])
    await stage.expect(page, "on")
    await stage.expect(second, "on")
    expect(subscriptions() - before).toBe(1)
    expect(await stage.stored()).toEqual([await stage.endpoint(page)])
  })

  it("waits for a worker that takes long to install, and is replaced meanwhile", async () => {
    const worker = stage.files["/worker.js"]!
    const { promise: asked, resolve: isAsked } = Promise.withResolvers<ServerResponse>()
    await using stack = new AsyncDisposableStack()
    const server = createServer((_, response) => isAsked(response))
    stack.defer(() => void server.close())
    await once(server.listen(0, "127.0.0.1"), "listening")
    const { port } = server.address() as AddressInfo
    stage.files["/worker.js"] = `self.addEventListener("install", (event) =>
      event.waitUntil(fetch("http://127.0.0.1:${port}/", { mode: "no-cors" })))\n${worker}`
    const page = await stage.page()
    const connecting = stage.connect(page)
    const response = await asked
    stage.files["/worker.js"] = worker
    await page.evaluate(`navigator.serviceWorker.getRegistration("/")
      .then((it) => { window.update = it.update() })`)
    response.end()
    expect(await connecting).toEqual({ state: "off", error: null })
    await page.evaluate("push.enable()")
    await stage.expect(page, "on")
  })

  it("registers the worker anew when its first installation failed", async () => {
    const worker = stage.files["/worker.js"]!
    stage.files["/worker.js"] = `self.addEventListener("install", (event) =>
      event.waitUntil(Promise.reject(new Error("no room"))))`
    const page = await stage.page()
    const connecting = stage.connect(page)
    await page.waitForFunction(`navigator.serviceWorker.getRegistration("/").then((it) => !it)`)
    stage.files["/worker.js"] = worker
    await connecting
    await stage.becomes(page, "off")
    await page.evaluate("push.enable()")
    await stage.expect(page, "on")
  })

  it("says worker where there is none", async () => {
    const page = await stage.load({ worker: "/none.js" })
    await stage.expect(page, "off", "worker")
    await page.evaluate("push.enable()")
    await stage.expect(page, "off", "worker")
  })

  it("says worker after 10 s in all, however long the registration took of them", async () => {
    const page = await stage.page()
    const options = JSON.stringify({ url: stage.service.url, user: stage.user })
    const said = await page.evaluate(`(async () => {
      const { connect } = await import("/client.js")
      const begin = performance.now()
      const registration = new Promise((resolve) => setTimeout(resolve, 6_000, { active: null }))
      const push = await connect({ ...${options}, registration })
      if (!push.error) await new Promise((resolve) => push.addEventListener("change", resolve))
      return [push.error.code, performance.now() - begin < 15_000]
    })()`)
    expect(said).toEqual(["worker", true])
  })

  it("says push-service when the browser cannot subscribe, and enables when it can", async () => {
    const page = await stage.load()
    stage.autopush.goOffline()
    await stage.autopush.waitFor(({ connected }) => !connected)
    await page.evaluate("push.enable()")
    await stage.expect(page, "off", "push-service")
    stage.autopush.goOnline()
    await page.evaluate(online)
    await stage.becomes(page, "on")
  })

  it("uses the registration of a worker that the site has", async () => {
    const page = await stage.page()
    const options = JSON.stringify({ url: stage.service.url, user: stage.user })
    const given = JSON.stringify([basic(stage.user)])
    await page.evaluate(`device.connect({
      ...${options}, registration: navigator.serviceWorker.register("/worker.js")
    }, ${given})`)
    await page.evaluate(`push.enable({ channels: ["${stage.user}"] })`)
    await stage.expect(page, "on")
    expect(await stage.stored()).toEqual([await stage.endpoint(page)])
    expect(await stage.publish(page, "By its own worker")).toEqual(["By its own worker"])
  })

  it("leaves the worker of a PWA at its scope alone when it has a folder of its own", async () => {
    stage.files["/pwa.js"] = "self.isPwa = true"
    stage.files["/bellcast/worker.js"] = stage.files["/worker.js"]!
    const page = await stage.page()
    await page.evaluate("navigator.serviceWorker.register('/pwa.js').then(() => {})")
    await stage.connect(page, { worker: "/bellcast/worker.js" })
    await page.evaluate("push.enable()")
    await stage.expect(page, "on")
    const scripts = await page.evaluate(`navigator.serviceWorker.getRegistration("/")
      .then(({ active }) => new URL(active.scriptURL).pathname)`)
    expect(scripts).toBe("/pwa.js")
    expect(await stage.stored()).toHaveLength(1)
  })
})
