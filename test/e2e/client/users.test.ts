// src/browser/client.js in a real Firefox: several users of one browser, and logout.
import type { Page } from "puppeteer-core"
import { describe, expect, it } from "vitest"
import webpush from "web-push"
import { call, finished, publish, until } from "#test/client.ts"
import { vapid } from "#test/service.ts"
import { UserAgent } from "#test/user-agent.ts"
import { firefoxPath } from "../browser.ts"
import { Stage } from "./stage.ts"

describe.skipIf(firefoxPath === undefined)("client.js and users", () => {
  const stage = new Stage()
  const second = () => `${stage.user}b`

  it("subscribes nobody for a second user who never pressed", async () => {
    const page = await stage.enabled()
    const first = await stage.endpoint(page)
    await stage.reload(page, { user: second() })
    await stage.expect(page, "off")
    expect(await stage.endpoint(page)).toBeNull()
    expect(await stage.stored(second())).toEqual([])
    const broadcast = await publish(stage.service.url, stage.user, { title: "For the first" })
    const counts = await finished(stage.service.url, stage.user, broadcast)
    expect(counts).toMatchObject({ delivered: 0, gone: 1 })
    expect(await page.evaluate("device.taken()")).toEqual([])
    expect((await stage.record(page)).former).toEqual({ [stage.user]: first })
  })

  it("brings the first user's back at the return, in the place of the old one", async () => {
    const page = await stage.enabled()
    const first = await stage.endpoint(page)
    await stage.reload(page, { user: second() })
    await page.evaluate("push.enable()")
    await stage.expect(page, "on")
    expect(await stage.stored(second())).toEqual([await stage.endpoint(page)])
    await stage.reload(page)
    await stage.expect(page, "on")
    const last = await stage.endpoint(page)
    expect(last).not.toBe(first)
    expect(await stage.stored()).toEqual([last])
    expect(await stage.publish(page, "Welcome back")).toEqual(["Welcome back"])
    expect(await page.evaluate("device.taken()")).toEqual([])
  })

  it("signs out: nothing is subscribed or stored, and the wish stays", async () => {
    const page = await stage.enabled()
    await page.evaluate("push.signOut()")
    await stage.expect(page, "off")
    expect(await stage.endpoint(page)).toBeNull()
    expect(await stage.stored()).toEqual([])
    const left = { user: null, on: { [stage.user]: true }, renewal: null, endpoint: null }
    expect(await stage.record(page)).toMatchObject(left)
    await stage.reload(page, { user: null })
    await stage.expect(page, "off")
    await stage.reload(page)
    await stage.expect(page, "on")
    expect(await stage.publish(page, "Back")).toEqual(["Back"])
  })

  it("signs out in the browser first, and then at the service", async () => {
    const page = await stage.enabled()
    await page.evaluate(`{
      const { fetch } = window
      window.atDelete = []
      window.fetch = async (url, options) => {
        if (options.method === "DELETE") window.atDelete.push(await device.endpoint())
        return fetch(url, options)
      }
    }`)
    await page.evaluate("push.signOut()")
    expect(await page.evaluate("atDelete")).toEqual([null])
    expect(await stage.stored()).toEqual([])
  })

  it("signs out without a usable token, and the service learns of it at the return", async () => {
    const page = await stage.enabled()
    const first = await stage.endpoint(page)
    await stage.reload(page, { tokens: ["expired"] })
    await page.evaluate("push.signOut()")
    expect(await stage.endpoint(page)).toBeNull()
    expect(await stage.stored()).toEqual([first])
    await stage.reload(page)
    await stage.expect(page, "on")
    expect(await stage.stored()).toEqual([await stage.endpoint(page)])
  })

  it("signs out offline, from the push service too, and the wish stays", async () => {
    const page = await stage.enabled()
    const first = await stage.endpoint(page)
    stage.autopush.goOffline()
    await stage.autopush.waitFor(({ connected }) => !connected)
    await stage.service.kill()
    // An offline Firefox forgets the subscription at once, and waits for 10 s nevertheless.
    const signedOut = page.evaluate("push.signOut()")
    const soon = Date.now() + 5_000
    await until(
      () => stage.endpoint(page),
      (endpoint) => endpoint === null
    )
    expect(Date.now()).toBeLessThan(soon)
    await signedOut
    const left = { user: null, on: { [stage.user]: true }, renewal: null, endpoint: null }
    expect(await stage.record(page)).toMatchObject(left)
    await stage.expect(page, "off")
    expect(await stage.endpoint(page)).toBeNull()
    stage.autopush.goOnline()
    await stage.startService()
    await stage.reload(page, { user: null })
    await stage.expect(page, "off")
    expect(await stage.endpoint(page)).toBeNull()
    expect(await stage.stored()).toEqual([first])
    await stage.reload(page)
    await stage.becomes(page, "on")
    expect(await stage.stored()).toEqual([await stage.endpoint(page)])
    expect(await stage.publish(page, "Back")).toEqual(["Back"])
  })

  it.each<[string, (page: Page) => Promise<unknown>]>([
    ["signs out", (page) => page.evaluate("push.signOut()")],
    ["is followed by nobody", (page) => stage.reload(page, { user: null })],
    ["is followed by another one", (page) => stage.reload(page, { user: second() })]
  ])("closes the shown pushes of a user who %s, and nothing of the site", async (_, change) => {
    const page = await stage.enabled()
    await page.evaluate(`device.show("Of the site")`)
    await publish(stage.service.url, stage.user, { title: "For the first" })
    const shown = () => page.evaluate("device.titles()") as Promise<ReadonlyArray<string>>
    await until(shown, ({ length }) => length === 2)
    await stage.reload(page)
    expect(await shown()).toHaveLength(2)
    await change(page)
    expect(await shown()).toEqual(["Of the site"])
  })

  it("closes what Safari showed without the worker: it has navigate, and no data", async () => {
    const page = await stage.enabled()
    await page.evaluate(`{
      const shown = { data: null, navigate: location.href, close: () => { window.isClosed = true } }
      ServiceWorkerRegistration.prototype.getNotifications = async () => [shown]
    }`)
    await page.evaluate("push.signOut()")
    expect(await page.evaluate("isClosed")).toBe(true)
  })

  it.each([
    ["ends a subscription of the service", vapid.publicKey, true],
    ["leaves one of another service", webpush.generateVAPIDKeys().publicKey, false]
  ])("%s by an earlier page, where no load succeeded, at signOut()", async (_, key, isEnded) => {
    const page = await stage.page()
    await page.evaluate(`device.subscribeBy("/", "${key}")`)
    await stage.connect(page, { tokens: ["expired"] })
    await stage.expect(page, "off", "login")
    expect(await stage.record(page)).toBeUndefined()
    await page.evaluate("push.signOut()")
    await stage.expect(page, "off")
    expect((await stage.endpoint(page)) === null).toBe(isEnded)
  })

  it.each<[string, (page: Page) => Promise<unknown>]>([
    ["at signOut()", (page) => page.evaluate("push.signOut()")],
    ["at a load of another user", (page) => stage.reload(page, { user: second() })]
  ])("ends one by an earlier page of a user whose button failed, %s", async (_, change) => {
    const page = await stage.page()
    await page.evaluate(`device.subscribeBy("/", "${vapid.publicKey}")`)
    await stage.connect(page, { tokens: ["expired"] })
    await page.evaluate("push.enable()")
    await stage.expect(page, "off", "login")
    expect((await stage.record(page)).key).toBeNull()
    await change(page)
    await stage.expect(page, "off")
    expect(await stage.endpoint(page)).toBeNull()
  })

  it("unsubscribes when nobody is signed in any more", async () => {
    const page = await stage.enabled()
    await stage.reload(page, { user: null })
    await stage.expect(page, "off")
    expect(await stage.endpoint(page)).toBeNull()
    await page.evaluate("push.enable()")
    await stage.expect(page, "off", "user")
  })

  it("does not take a subscription of another user that an earlier page made", async () => {
    const page = await stage.enabled()
    await page.evaluate("indexedDB.deleteDatabase('bellcast')")
    await stage.reload(page, { user: second() })
    await stage.expect(page, "off")
    expect(await stage.endpoint(page)).toBeNull()
    expect(await stage.stored(second())).toEqual([])
  })

  it("ends one of another user that an earlier page made by a worker elsewhere", async () => {
    stage.files["/old/worker.js"] = stage.files["/worker.js"]!
    const page = await stage.page()
    const data = await page.evaluate(`device.subscribeBy("/old/", "${vapid.publicKey}")`)
    await call(stage.service.url, "POST", "/subscriptions", stage.user, { data })
    await stage.connect(page, { user: second() })
    await stage.expect(page, "off")
    expect(await page.evaluate("device.endpoints()")).toEqual([])
    expect(await stage.stored(second())).toEqual([])
  })

  it("moves a browser whose endpoint another user holds with other keys to a new one", async () => {
    const page = await stage.enabled()
    const first = await stage.endpoint(page)
    const { body } = await call(stage.service.url, "GET", "/subscriptions", stage.user)
    const { endpoint } = body.data[0]
    await call(stage.service.url, "DELETE", "/subscriptions", stage.user)
    const { keys } = new UserAgent("https://push.example.com/a", {}).subscription
    const other = { data: { endpoint, keys } }
    const taken = await call(stage.service.url, "POST", "/subscriptions", "another", other)
    expect(taken.status).toBe(201)
    await stage.age(page)
    await stage.reload(page)
    await stage.expect(page, "on")
    expect(await stage.endpoint(page)).not.toBe(first)
    expect(await stage.stored()).toEqual([await stage.endpoint(page)])
  })
})
