// The console behind a real oauth2-proxy, in real browsers: whom the proxy knows is logged in
// without a press, the page follows what the proxy says of its user, and another person's link
// takes nobody's place without a question.
import type { Browser, Page } from "puppeteer-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { until } from "#test/client.ts"
import type { OidcProvider } from "#test/identity/oidc-provider.ts"
import { runCli } from "#test/run-cli.ts"
import { chromiumPath, firefoxPath, startChromium, startFirefox } from "../../e2e/browser.ts"
import { missingProxy, startBehindProxy } from "./oauth2-proxy.ts"

if (missingProxy !== undefined) process.stderr.write(`skipped: ${missingProxy}\n`)

const browsers = {
  Firefox: { path: firefoxPath, start: startFirefox },
  Chromium: { path: chromiumPath, start: startChromium }
} as const

const signed = {
  BELLCAST_AUTH_SIGNED_SECRETS: "the-secret-of-the-site-and-of-Bellcast",
  BELLCAST_AUTH_SIGNED_AUDIENCE: "bellcast"
}
const opened = new AsyncDisposableStack()
let issuer: OidcProvider
let url: string

beforeAll(async () => {
  if (missingProxy !== undefined) return
  ;({ issuer, url } = await startBehindProxy(opened, (origin) => ({
    ...signed,
    BELLCAST_AUTH_POLICIES: "signed proxy",
    BELLCAST_CONSOLE_ORIGIN: origin,
    // The console is on a host of its own, which this proxy is in front of.
    BELLCAST_CORS_ORIGINS: "https://www.example.org"
  })))
})
afterAll(() => opened.disposeAsync())

const linkFor = async (user: string): Promise<string> => {
  const env = { ...signed, BELLCAST_AUTH_POLICIES: "signed", BELLCAST_CONSOLE_ORIGIN: url }
  return (await runCli(["sign-user", user, "--console"], env)).stdout.trimEnd()
}

for (const [name, { path, start }] of Object.entries(browsers))
  describe.skipIf(missingProxy !== undefined || path === undefined)(
    `the console behind oauth2-proxy in ${name}`,
    { timeout: 120_000 },
    () => {
      let browser: Browser
      let page: Page
      beforeAll(async () => {
        browser = await start(path!)
        page = await browser.newPage()
        await page.setViewport({ width: 1280, height: 900 })
      })
      afterAll(() => browser?.close())

      const becomes = (selector: string, expected: RegExp, at = page) =>
        until(
          () =>
            at
              .evaluate(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? ""`)
              .catch(() => "while it loads") as Promise<string>,
          (text) => expected.test(text)
        )
      const press = async (text: string) => {
        const path = `//*[self::button or self::a][contains(normalize-space(.), "${text}")]`
        await (await page.waitForSelector(`::-p-xpath(${path})`))!.click()
      }
      /** The page itself asks the user for nothing. */
      const logInAtProxy = async (user: string, at = page) => {
        issuer.logsIn(user)
        await at.goto(`${url}/oauth2/start?rd=/v1/console/`)
        await becomes(".who b", new RegExp(`^${user}$`), at)
      }

      it("logs in whom the proxy knows, without a press, across reloads", async () => {
        await logInAtProxy("alice")
        expect(new URL(page.url()).origin).toBe(url)
        await page.reload()
        await becomes(".who b", /^alice$/)
      })

      it("asks for the login once the proxy's has ended, and goes on where it was", async () => {
        const other = await browser.newPage()
        await other.goto(`${url}/oauth2/sign_out?rd=/ping`)
        await page.bringToFront()
        await press("Drafts")
        await becomes("dialog", /Your login has ended/)
        await press("Go on with the login of your organisation")
        await becomes("dialog", /did not say who you are/)
        await logInAtProxy("alice", other)
        await other.close()
        await page.bringToFront()
        await press("Go on with the login of your organisation")
        await becomes("dialog", /^$/)
        expect(page.url()).toMatch(/#\/drafts$/)
        await becomes(".who b", /^alice$/)
      })

      it("asks before another person's link takes the place of the proxy's user", async () => {
        const link = await linkFor("bob")
        // As in a new tab, in which only the proxy knows who this is.
        await page.evaluate("sessionStorage.clear()")
        await page.goto("about:blank")
        await page.goto(link)
        await becomes("dialog", /wants to log you in as bob\. You are logged in as alice/)
        expect(page.url()).not.toMatch(/login|eyJ/)
        expect(await page.evaluate("JSON.stringify(sessionStorage)")).not.toMatch(/eyJ|bob/)
        await press("Stay alice")
        await becomes("dialog", /^$/)
        await becomes(".who b", /^alice$/)
        await page.reload()
        await becomes(".who b", /^alice$/)
      })

      /** Another person at the same browser: neither proxy nor issuer knows the former one. */
      const replaceAtProxy = async (user: string, at = page) => {
        const context = page.browserContext()
        await context.deleteCookie(...(await context.cookies()))
        await logInAtProxy(user, at)
      }

      it("shows who the proxy says one is, when somebody else logged in there", async () => {
        await replaceAtProxy("carl")
      })

      it("does nothing in the name of who logs in there while the page is open", async () => {
        await page.evaluate("sessionStorage.clear()")
        await replaceAtProxy("alice")
        await press("New notification")
        await (await page.waitForSelector("[name=title]"))!.type("alice writes")
        await becomes(".foot", /Saved at/)
        const other = await browser.newPage()
        await replaceAtProxy("dora", other)
        await page.bringToFront()
        await page.type("[name=body]", "and writes more")
        await becomes("dialog", /You are now dora.*opened by alice/s)
        await becomes(".who b", /^alice$/)
        const drafts = `fetch("${url}/v1/drafts").then((response) => response.text())`
        expect(await other.evaluate(drafts)).not.toContain("alice writes")
        // Asked in vain.
        await press("I am alice again")
        await becomes("dialog", /You are now dora/)
        await replaceAtProxy("alice", other)
        await page.bringToFront()
        await press("I am alice again")
        await becomes("dialog", /^$/)
        // The keys that were pressed as the question opened went nowhere.
        await page.type("[name=body]", "and goes on")
        await until(
          async () => (await other.evaluate(drafts)) as string,
          (text) => text.includes("and goes on")
        )
        await replaceAtProxy("dora", other)
        await page.bringToFront()
        await press("Notifications")
        await press("Go on as dora")
        await becomes(".who b", /^dora$/)
        await becomes("main .box", /You are now dora.*page of alice/s)
        expect(await other.evaluate(drafts)).not.toContain("alice writes")
        await other.close()
      })

      it("is another person once the question was answered so", async () => {
        const link = await linkFor("bob")
        await page.goto("about:blank")
        await page.goto(link)
        await press("Become bob")
        await becomes(".who b", /^bob$/)
        await page.reload()
        await becomes(".who b", /^bob$/)
      })
    }
  )
