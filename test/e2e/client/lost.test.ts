// src/browser/client.js in a real Firefox: subscriptions that were lost, moved, rotated, removed at
// the service, or made by an earlier page.
import type { Page } from "puppeteer-core"
import { describe, expect, it } from "vitest"
import webpush from "web-push"
import { call, until } from "#test/client.ts"
import { vapid } from "#test/service.ts"
import { suspend } from "#test/suspend.ts"
import { type SubscriptionJson, UserAgent } from "#test/user-agent.ts"
import { firefoxPath } from "../browser.ts"
import { Stage } from "./stage.ts"

describe.skipIf(firefoxPath === undefined)("client.js brings back", () => {
  const stage = new Stage()

  /** Subscribes as an earlier page did, by a worker of another scope. */
  const subscribeOld = (page: Page, key: string) => {
    stage.files["/old/worker.js"] = stage.files["/worker.js"]!
    return page.evaluate(`device.subscribeBy("/old/", "${key}")`)
  }

  it("nothing where nobody pressed, and stores nothing", async () => {
    const page = await stage.load()
    await stage.expect(page, "off")
    expect(await stage.record(page)).toBeUndefined()
    expect(await stage.stored()).toEqual([])
  })

  it("nothing on a visit that changes nothing: it writes nothing", async () => {
    const page = await stage.enabled()
    const [before, revision] = [await stage.record(page), await stage.revision()]
    await stage.age(page)
    await stage.reload(page)
    await stage.expect(page, "on")
    expect(await stage.revision()).toBe(revision)
    expect(await stage.record(page)).toMatchObject({
      endpoint: before.endpoint,
      renewal: before.renewal
    })
  })

  it("a subscription that is gone while it is wanted, in the place of the old one", async () => {
    const page = await stage.enabled()
    const before = await stage.endpoint(page)
    await page.evaluate("device.unsubscribe()")
    await stage.reload(page)
    await stage.expect(page, "on")
    const after = await stage.endpoint(page)
    expect(after).not.toBe(before)
    expect(await stage.stored()).toEqual([after])
    expect(await stage.publish(page, "News")).toEqual(["News"])
  })

  it("nothing that the user switched off", async () => {
    const page = await stage.enabled()
    await page.evaluate("push.disable()")
    await stage.expect(page, "off")
    expect(await stage.endpoint(page)).toBeNull()
    expect(await stage.stored()).toEqual([])
    await stage.reload(page)
    await stage.expect(page, "off")
    expect(await stage.endpoint(page)).toBeNull()
  })

  it("a subscription that the service does not know", async () => {
    const page = await stage.enabled()
    await call(stage.service.url, "DELETE", "/subscriptions", stage.user)
    await stage.age(page)
    await stage.reload(page)
    await stage.expect(page, "on")
    expect(await stage.stored()).toEqual([await stage.endpoint(page)])
  })

  it("a subscription that the service removed, with another secret that renews it", async () => {
    const page = await stage.enabled()
    const before = await stage.record(page)
    await call(stage.service.url, "DELETE", "/subscriptions", stage.user)
    await stage.age(page)
    await stage.reload(page)
    await stage.expect(page, "on")
    const { renewal } = await stage.record(page)
    expect(renewal).not.toBe(before.renewal)
    const data = new UserAgent("http://127.0.0.1:1/renewed", {}).subscription
    const body = { renewal, data }
    const path = "/subscriptions/replace"
    expect((await call(stage.service.url, "POST", path, undefined, body)).status).toBe(201)
  })

  it("the pushes of a subscription that the service suspended", async () => {
    const page = await stage.enabled()
    const [{ id }] = await stage.list()
    await suspend(stage.nats.url, stage.user, id)
    const path = `/subscriptions/${id}/test`
    const test = () => call(stage.service.url, "POST", path, stage.user)
    await until(test, ({ body }) => body.data?.reason === "suspended")
    await stage.autopush.waitFor(({ unacknowledged }) => unacknowledged === 0)
    await page.evaluate("device.taken()")
    await stage.age(page)
    await stage.reload(page)
    await stage.expect(page, "on")
    expect(await stage.publish(page, "Active")).toEqual(["Active"])
  })

  it.each([
    ["somebody looks at it again", "document.dispatchEvent(new Event('visibilitychange'))"],
    ["it is looked at all the time", ""]
  ])("it in a page that was open for a day, when %s", async (_, look) => {
    const page = await stage.enabled()
    await call(stage.service.url, "DELETE", "/subscriptions", stage.user)
    await page.evaluate(`{
      const now = Date.now
      Date.now = () => now() + 25 * 3_600_000
      ${look}
    }`)
    const stored = await until(
      () => stage.stored(),
      ({ length }) => length > 0
    )
    expect(stored).toEqual([await stage.endpoint(page)])
  })

  it("a subscription at another endpoint than the service has, in its place", async () => {
    const page = await stage.enabled()
    await page.evaluate("device.unsubscribe()")
    const { key } = await stage.record(page)
    const { endpoint } = (await page.evaluate(`device.subscribe("${key}")`)) as SubscriptionJson
    await stage.reload(page)
    await stage.expect(page, "on")
    expect(await stage.endpoint(page)).toBe(endpoint)
    expect(await stage.stored()).toEqual([endpoint])
  })

  it("the keys of the browser where the service has others", async () => {
    const page = await stage.enabled()
    const [{ id, ...stored }] = await stage.list()
    const { keys } = new UserAgent("https://push.example.com/a", {}).subscription
    const body = { data: { ...stored, keys } }
    await call(stage.service.url, "PUT", `/subscriptions/${id}`, stage.user, body)
    await stage.age(page)
    await stage.reload(page)
    await stage.expect(page, "on")
    const [after] = await stage.list()
    expect(after).toMatchObject({ endpoint: stored.endpoint, keys: stored.keys })
  })

  it("what an earlier page subscribed, by a worker of another scope too: once", async () => {
    const page = await stage.page()
    const data = await subscribeOld(page, vapid.publicKey)
    await call(stage.service.url, "POST", "/subscriptions", stage.user, { data })
    await stage.connect(page)
    await stage.expect(page, "on")
    expect(await page.evaluate(`device.endpoint("/old/")`)).toBeNull()
    expect(await stage.stored()).toEqual([await stage.endpoint(page)])
  })

  it("nothing of another service, whose subscription stays", async () => {
    const page = await stage.page()
    await subscribeOld(page, webpush.generateVAPIDKeys().publicKey)
    await stage.connect(page)
    await stage.expect(page, "off")
    await page.evaluate("push.enable()")
    await stage.expect(page, "on")
    expect(await page.evaluate(`device.endpoint("/old/")`)).not.toBeNull()
    expect(await stage.stored()).toEqual([await stage.endpoint(page)])
  })

  // The last one: a service does not start again without this key.
  it("pushes after the service began to sign with another key", async () => {
    const page = await stage.enabled()
    const before = await stage.endpoint(page)
    const next = webpush.generateVAPIDKeys()
    await stage.service.kill()
    await stage.startService({
      BELLCAST_VAPID_PUBLIC_KEY: next.publicKey,
      BELLCAST_VAPID_PRIVATE_KEY: next.privateKey,
      BELLCAST_VAPID_FORMER_KEYS: `${vapid.publicKey}:${vapid.privateKey}`
    })
    // Five minutes later the browser would forget the former key by itself.
    const refresh = `fetch("${stage.service.url}/vapid-public-key", { cache: "reload" })`
    await page.evaluate(`${refresh}.then((it) => it.text())`)
    await stage.reload(page)
    await stage.expect(page, "on")
    expect((await stage.record(page)).key).toBe(next.publicKey)
    expect(await stage.endpoint(page)).not.toBe(before)
    expect(await stage.stored()).toEqual([await stage.endpoint(page)])
    expect(await stage.publish(page, "Signed anew")).toEqual(["Signed anew"])
  })
})
