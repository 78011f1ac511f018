// The demo for everybody: rules of accessibility in light and dark, at the width of a desk and of a
// phone, its strict policy, and the keyboard alone.
import type { Browser, Page } from "puppeteer-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type ChromiumVendor, startChromiumVendor } from "#test/chromium-vendor.ts"
import { until } from "#test/client.ts"
import { startDevelopment } from "#test/development.ts"
import type { Service } from "#test/service.ts"
import { brokenRules, collectViolations, violationsOf } from "../access.ts"
import { chromiumPath, firefoxPath, setNotifications, startChromium } from "../browser.ts"
import { answerPrompt } from "../firefox-windows.ts"
import { demoUrl, Stage } from "./stage.ts"

if (chromiumPath === undefined)
  process.stdout.write("no Chromium here: its tests are skipped (apt-get install chromium)\n")

describe.skipIf(chromiumPath === undefined)("the demo in Chromium", () => {
  const opened = new AsyncDisposableStack()
  let service: Service
  let vendor: ChromiumVendor
  let browser: Browser
  let page: Page
  beforeAll(async () => {
    service = opened.use(await startDevelopment())
    vendor = opened.use(await startChromiumVendor())
    browser = await startChromium(chromiumPath!, vendor)
    opened.defer(() => browser.close())
    await setNotifications(browser, new URL(service.url).origin, "granted")
    page = await browser.newPage()
    await collectViolations(page)
    await page.goto(demoUrl(service))
  })
  afterAll(() => opened.disposeAsync())

  const text = (selector: string) => page.$eval(selector, (each) => each.textContent ?? "")
  const becomes = (selector: string, expected: RegExp) =>
    until(
      () => text(selector).catch(() => ""),
      (found) => expected.test(found)
    )

  /** The page with all that it can show: a device, a channel, rows with details, outputs. */
  const useAll = async () => {
    await becomes("#state", /^off$/)
    await page.click("#enable")
    await becomes("#state", /^on$/)
    await becomes("#devices", /This browser/)
    await page.click("#join button")
    await becomes("#published", /You joined sports/)
    await page.click("#break-gone button")
    await becomes("#break-gone output", /410/)
    await page.click("#underneath summary")
  }

  for (const scheme of ["light", "dark"])
    for (const [width, name] of [
      [1280, "a desk"],
      [360, "a phone"]
    ] as const)
      it(`breaks no rule in ${scheme} at the width of ${name}`, async () => {
        await page.setViewport({ width, height: 740 })
        await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }])
        if ((await text("#state")) !== "on") await useAll()
        expect(await brokenRules(page)).toEqual([])
        expect(await violationsOf(page)).toEqual([])
        const widths = "[document.documentElement.scrollWidth, innerWidth]"
        const [content, window] = (await page.evaluate(widths)) as [number, number]
        expect(content).toBeLessThanOrEqual(window)
        // What explains a press is in sight wherever the page is scrolled to.
        for (const y of [0, 600, 99_999]) {
          await page.evaluate(`scrollTo(0, ${y})`)
          const newest = `(() => {
            const time = document.querySelector("#underneath time")
            const { bottom, top } = time.getBoundingClientRect()
            return top >= 0 && bottom <= innerHeight
          })()`
          expect([y, await page.evaluate(newest)]).toEqual([y, true])
        }
      })

  it("breaks no rule where nobody is signed in", async () => {
    await Promise.all([page.waitForNavigation(), page.click("#log-out")])
    await becomes("#user", /^Nobody is signed in/)
    expect(await brokenRules(page)).toEqual([])
  })

  for (const scheme of ["light", "dark"])
    it(`breaks no rule in the API description, in ${scheme}`, async () => {
      const api = await browser.newPage()
      await api.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }])
      await api.goto(`${service.url}/__api__`)
      expect(await brokenRules(api, ["color-contrast"])).toEqual([])
    })

  it("obeys its policy, which refuses what is not of the page", async () => {
    expect(await violationsOf(page)).toEqual([])
    await page.evaluate(`document.body.append(
      Object.assign(document.createElement("img"), { src: "https://example.org/" }))`)
    await until(
      () => violationsOf(page),
      (violations) => violations.includes("img-src")
    )
  })
})

describe.skipIf(firefoxPath === undefined)("the demo in Firefox", () => {
  const stage = new Stage("prompt")
  const { becomes, shown } = stage

  /**
   * Moves the focus by Tab to the next control with this name, and presses a key. While a
   * notification is shown, its window has the focus, and a busy machine closes it late.
   */
  const tabTo = async (name: string, key: "Enter" | " ") => {
    const focused = `(() => {
      const { activeElement: it } = document
      if (!it.matches(":focus-visible")) return ""
      if (getComputedStyle(it).outlineStyle === "none") return "no outline"
      return it.ariaLabel ?? it.labels?.[0]?.textContent ?? it.textContent
    })()`
    const passed = new Set<string>()
    for (const end = performance.now() + 40_000; performance.now() < end; ) {
      await stage.page.keyboard.press("Tab")
      const found = (await stage.page.evaluate(focused)) as string
      expect(found).not.toBe("no outline")
      if (found === name) return stage.page.keyboard.press(key)
      passed.add(found)
    }
    const hasFocus = await stage.page.evaluate("document.hasFocus()")
    throw new Error(`no way by Tab to ${name}, only to ${[...passed]}; has focus: ${hasFocus}`)
  }
  const focused = () => stage.page.evaluate("document.activeElement.textContent")

  it("is used by the keyboard alone", { timeout: 120_000 }, async () => {
    await becomes("#state", /^off$/)
    await tabTo("Notify me", "Enter")
    await answerPrompt(stage.page, "Allow")
    await becomes("#state", /^on$/)
    expect(await focused()).toBe("Send a push")
    await stage.page.keyboard.press(" ")
    await becomes("#sent", /delivered/)
    expect(await shown()).toHaveLength(1)
    await tabTo("Join", "Enter")
    await becomes("#published", /You joined sports/)
    await tabTo("Publish", " ")
    await becomes("#published", /1 delivered/)
    expect(await shown()).toHaveLength(1)
    // Else the next Tab moves on from this button, and beyond the last control never back.
    await Promise.all([stage.page.waitForNavigation(), tabTo("Load the page again", "Enter")])
  })

  it("keeps the focus where a button vanishes, and where a list is shown anew", {
    timeout: 120_000
  }, async () => {
    await becomes("#state", /^on$/)
    await becomes("#channels", /sports/)
    await becomes("#devices", /This browser/)
    await tabTo("Stop notifying me", "Enter")
    await becomes("#state", /^off$/)
    expect(await focused()).toBe("Notify me")
    await stage.page.keyboard.press("Enter")
    await becomes("#state", /^on$/)
    await becomes("#devices", /This browser/)
    await tabTo("Leave sports", " ")
    await becomes("#published", /You left sports/)
    expect(await stage.page.evaluate("document.activeElement.id")).toBe("channels")
    await tabTo("Send a push to this browser", "Enter")
    await becomes("#tested", /delivered/)
    expect(await focused()).toBe("Send a push")
    expect(await shown()).toHaveLength(1)
  })

  it("breaks no rule", async () => {
    expect(await brokenRules(stage.page)).toEqual([])
  })
})
