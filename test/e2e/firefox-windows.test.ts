// The prompt and the notifications of Firefox can be driven: other tests rely on it.
import type { Browser, Page } from "puppeteer-core"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { until } from "#test/client.ts"
import { firefoxPath, setNotifications, startFirefox } from "./browser.ts"
import { answerPrompt, clickNotification } from "./firefox-windows.ts"
import { type Site, startPages } from "./site.ts"

const html = `<!doctype html><title>Site</title>
<button onclick="Notification.requestPermission()">Notify me</button>`
const worker = `self.addEventListener("notificationclick", ({ action, notification }) =>
  clients.openWindow("/clicked-" + notification.title + action))`

describe.skipIf(firefoxPath === undefined)("a driven Firefox", () => {
  let browser: Browser
  let site: Site
  let page: Page
  beforeAll(async () => {
    const files = { "/": html, "/worker.js": worker, "/clicked-a": html, "/clicked-bone": html }
    site = await startPages(files)
    browser = await startFirefox(firefoxPath!)
    page = await browser.newPage()
    await page.goto(site.url)
  })
  afterAll(async () => {
    await browser?.close()
    await site?.[Symbol.asyncDispose]()
  })

  const permission = () => page.evaluate("Notification.permission")
  const expectPermission = (expected: string) =>
    until(permission, (state) => state === expected).then((state) => assert.equal(state, expected))

  it("has not decided about notifications until its prompt is answered", async () => {
    await expectPermission("default")
    await page.click("button")
    await answerPrompt(page, "Block")
    await expectPermission("denied")
    await setNotifications(browser, site.url, "prompt")
    await expectPermission("default")
    await page.click("button")
    await answerPrompt(page, "Allow")
    await expectPermission("granted")
  })

  it("tells the worker about a click on its notification, and on a button of it", async () => {
    await setNotifications(browser, site.url, "granted")
    const show = (title: string) => `navigator.serviceWorker.register("/worker.js")
      .then(() => navigator.serviceWorker.ready)
      .then((it) => it.showNotification("${title}", { actions: [{ action: "one", title: "1" }] }))`
    const opened = (path: string) => browser.waitForTarget((each) => each.url() === site.url + path)
    await page.evaluate(show("a"))
    await clickNotification(browser, "a")
    await opened("/clicked-a")
    await page.evaluate(show("b"))
    await clickNotification(browser, "b", "one")
    await opened("/clicked-bone")
  })
})
