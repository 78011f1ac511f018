// The demo of `make run` in a real Firefox: from the address that the start prints to a push.

import type { Browser, Page } from "puppeteer-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Autopush, startAutopush } from "#test/autopush.ts"
import { until } from "#test/client.ts"
import { startDevelopment } from "#test/development.ts"
import type { Service } from "#test/service.ts"
import { firefoxPath, setNotifications, startFirefox } from "./browser.ts"
import { answerPrompt } from "./firefox-windows.ts"

describe.skipIf(firefoxPath === undefined)("the demo", () => {
  const opened = new AsyncDisposableStack()
  let service: Service
  let autopush: Autopush
  let browser: Browser
  let page: Page
  beforeAll(async () => {
    service = opened.use(await startDevelopment())
    autopush = opened.use(await startAutopush())
    browser = opened.use(await startFirefox(firefoxPath!, autopush.socketUrl))
    await setNotifications(browser, new URL(service.url).origin, "prompt")
    page = await browser.newPage()
  })
  afterAll(() => opened.disposeAsync())

  const textOf = (selector: string) => page.$eval(selector, ({ textContent }) => textContent ?? "")
  const becomes = (selector: string, text: RegExp) =>
    until(
      () => textOf(selector),
      (found) => text.test(found)
    )

  it("shows a push after a press and the browser's question", async () => {
    const [, url] = /Bellcast is ready\..*\n\n +(http\S+)\n/.exec(service.output()) ?? []
    await page.goto(url!)
    await becomes("#state", /^off/)
    await page.click("#enable")
    await answerPrompt(page, "Allow")
    await becomes("#state", /^on/)
    await page.click("#send")
    await becomes("#sent", /delivered: its push service answered 201/)
    const shown = `navigator.serviceWorker.getRegistration()
      .then((registration) => registration.getNotifications())
      .then((all) => all.map(({ title, body }) => ({ title, body })))`
    const all = await until(
      async () => (await page.evaluate(shown)) as ReadonlyArray<object>,
      ({ length }) => length > 0
    )
    expect(all).toEqual([{ title: "Hello", body: "from you" }])
    expect(autopush.refusals).toEqual([])
  })
})
