// Chromium can be driven to subscribe, to fail, and to get pushes: other tests rely on it.
import type { Browser, Page } from "puppeteer-core"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { type ChromiumVendor, startChromiumVendor } from "#test/chromium-vendor.ts"
import { vapid } from "#test/service.ts"
import { chromiumPath, setNotifications, startChromium } from "./browser.ts"
import { deliverPush } from "./chromium-push.ts"
import { type Site, startPages } from "./site.ts"

const worker = `self.addEventListener("push", (event) =>
  event.waitUntil(registration.showNotification(event.data.text())))`

describe.skipIf(chromiumPath === undefined)("a driven Chromium", () => {
  let vendor: ChromiumVendor
  let browser: Browser
  let site: Site
  let page: Page
  beforeAll(async () => {
    vendor = await startChromiumVendor()
    site = await startPages({ "/": "<!doctype html><title>Site</title>", "/worker.js": worker })
    browser = await startChromium(chromiumPath!, vendor)
    page = await browser.newPage()
    await page.goto(site.url)
    await page.evaluate(`navigator.serviceWorker.register("/worker.js")
      .then(() => navigator.serviceWorker.ready).then(() => {})`)
  })
  afterAll(async () => {
    await browser?.close()
    await site?.[Symbol.asyncDispose]()
    await vendor?.[Symbol.asyncDispose]()
  })

  const inManager = (expression: string) =>
    page.evaluate(`navigator.serviceWorker.ready.then(({ pushManager }) => pushManager)
      .then((manager) => ${expression}).catch(({ name, message }) => name + ": " + message)`)
  const subscribe = () =>
    inManager(`manager.subscribe({
      userVisibleOnly: true, applicationServerKey: "${vapid.publicKey}"
    }).then(({ endpoint }) => endpoint)`) as Promise<string>

  it("refuses and allows notifications, and has not decided before", async () => {
    const permission = () => page.evaluate("Notification.permission")
    assert.equal(await permission(), "default")
    await setNotifications(browser, site.url, "denied")
    assert.equal(await permission(), "denied")
    assert.equal(await subscribe(), "NotAllowedError: Registration failed - permission denied")
    await setNotifications(browser, site.url, "granted")
    assert.equal(await permission(), "granted")
  })

  it("fails to subscribe when the push service refuses", async () => {
    await setNotifications(browser, site.url, "granted")
    vendor.refuse(true)
    assert.equal(await subscribe(), "AbortError: Registration failed - push service error")
    vendor.refuse(false)
  })

  it("subscribes, shows a push, and unsubscribes", async () => {
    await setNotifications(browser, site.url, "granted")
    assert.match(await subscribe(), /^https:\/\/[^/]+\/fcm\/send\/[0-9a-f]{32}$/)
    assert.equal(await deliverPush(page, `${site.url}/`, "A"), "Success")
    const shown = `navigator.serviceWorker.ready.then((it) => it.getNotifications())
      .then((all) => all.map(({ title }) => title))`
    assert.deepEqual(await page.evaluate(shown), ["A"])
    assert.isTrue(await inManager("manager.getSubscription().then((it) => it.unsubscribe())"))
    assert.isNull(await inManager("manager.getSubscription()"))
  })
})
