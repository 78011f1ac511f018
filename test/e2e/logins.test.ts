// The pages of logins in real browsers: the question before a login by mail, and the end of one
// that failed. The test plays the broker.
import type { Browser, Page } from "puppeteer-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { until } from "#test/client.ts"
import { type Portier, startPortier } from "#test/identity/portier.ts"
import { brokenRules } from "./access.ts"
import { chromiumPath, firefoxPath, startChromium, startFirefox } from "./browser.ts"
import { startSite } from "./site.ts"

const browsers = {
  Firefox: { path: firefoxPath, start: startFirefox, package: "firefox-esr" },
  Chromium: { path: chromiumPath, start: startChromium, package: "chromium" }
} as const

let portier: Portier
let site: Awaited<ReturnType<typeof startSite>>

beforeAll(async () => {
  site = await startSite()
  portier = await startPortier("gateway,projection", {
    BELLCAST_AUTH_PORTIER_REDIRECT_HOSTS: new URL(site.url).host
  })
})
afterAll(() => Promise.all([portier, site].map((each) => each?.[Symbol.asyncDispose]())))

/** A link to a login, as a mail may hold it. */
const linkFor = (email: string) => {
  const fields = new URLSearchParams({ email, redirect: `${site.url}/#tab=2&token=` })
  return `${portier.origin}/v1/portier/login?${fields}`
}

/** The broker's page sends the browser back with a form. */
const returnWith = async (page: Page, fields: Readonly<Record<string, string>>) => {
  const inputs = Object.entries(fields).map(
    ([name, value]) => `<input name=${name} value=${value}>`
  )
  const action = `${portier.origin}/v1/portier/verify`
  await page.goto(`data:text/html,<form method=post action=${action}>${inputs.join("")}</form>`)
  await Promise.all([
    page.waitForNavigation(),
    page.evaluate("document.querySelector('form').submit()")
  ])
}

const textOf = (page: Page) => page.evaluate("document.body.innerText") as Promise<string>

/** At the width of a phone nothing is cut off, and nothing is smaller than people can read. */
const fitsPhone = async (page: Page) => {
  await page.setViewport({ width: 360, height: 640 })
  const widths = "[document.documentElement.scrollWidth, innerWidth]"
  const [content, window] = (await page.evaluate(widths)) as [number, number]
  expect(content).toBeLessThanOrEqual(window)
  const size = await page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)")
  expect(size).toBeGreaterThanOrEqual(16)
}

for (const [name, { package: packageName, path, start }] of Object.entries(browsers)) {
  if (path === undefined)
    process.stdout.write(`no ${name} here: skipped (apt-get install ${packageName})\n`)

  describe.skipIf(path === undefined)(name, { timeout: 60_000 }, () => {
    let browser: Browser
    let page: Page
    beforeAll(async () => {
      browser = await start(path!)
      page = await browser.newPage()
    })
    afterAll(() => browser?.close())

    it("is asked when a link begins a login, and goes to the broker by the button", async () => {
      await page.goto(linkFor("anna@example.org"))
      expect(await textOf(page)).toContain("anna@example.org")
      expect(await page.title()).toBe(`Log in at ${new URL(site.url).host}?`)
      expect(await page.browserContext().cookies()).toEqual([])
      await fitsPhone(page)
      expect(await brokenRules(page)).toEqual([])
      await page.click("button")
      await until(
        async () => page.url(),
        (url) => url.startsWith(`${portier.broker.url}/auth?`)
      )
    })

    it("comes back to its page when the login fails, with an error for the token", async () => {
      await returnWith(page, { error: "access_denied" })
      const { hash, origin } = new URL(page.url())
      expect(origin).toBe(new URL(site.url).origin)
      expect(Object.fromEntries(new URLSearchParams(hash.slice(1)))).toEqual({
        tab: "2",
        error: "access_denied",
        error_description: expect.stringContaining("cancelled")
      })
    })

    it("sees what to do where it did not begin the login", async () => {
      const other = await (await browser.createBrowserContext()).newPage()
      await returnWith(other, { id_token: "x" })
      expect(await textOf(other)).toContain("type the code there")
      await fitsPhone(other)
      expect(await brokenRules(other, ["color-contrast"])).toEqual([])
    })
  })
}
