// The console by logins of a real Portier broker, in real browsers: by the code of the mail, and by
// its link, which opens another tab; under the mail address, which the service does not know.
import type { Browser, Page } from "puppeteer-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { until } from "#test/client.ts"
import { startNats } from "#test/nats.ts"
import { claimPort } from "#test/ports.ts"
import { startService } from "#test/service.ts"
import { chromiumPath, firefoxPath, startChromium, startFirefox } from "../../e2e/browser.ts"
import { Desk } from "../../e2e/console/desk.ts"
import { type MailSink, startMailSink } from "./mail-sink.ts"
import { type Broker, missingBroker, startBroker } from "./portier-broker.ts"

if (missingBroker !== undefined) process.stderr.write(`skipped: ${missingBroker}\n`)

const browsers = {
  Firefox: { path: firefoxPath, start: startFirefox },
  Chromium: { path: chromiumPath, start: startChromium }
} as const

const opened = new AsyncDisposableStack()
let broker: Broker
let mails: MailSink
/** The origin of the console; its logins return to the service at another one. */
let origin: string

beforeAll(async () => {
  if (missingBroker !== undefined) return
  const port = await claimPort()
  origin = `http://localhost:${port}`
  mails = opened.use(await startMailSink())
  broker = opened.use(await startBroker(mails.address))
  const env = {
    BELLCAST_AUTH_POLICIES: "portier",
    BELLCAST_AUTH_PORTIER_BROKER_URL: broker.url,
    BELLCAST_HTTP_SCHEME: "http",
    BELLCAST_HTTP_HOST: `127.0.0.1:${port}`,
    BELLCAST_CORS_ORIGINS: "https://www.example.org",
    BELLCAST_CONSOLE_ORIGIN: origin
  }
  const nats = opened.use(await startNats())
  const roles = "gateway,projection,fanout"
  opened.use(await startService({ natsUrl: nats.url, port, roles, env }))
}, 300_000)
afterAll(() => opened.disposeAsync())

for (const [name, { path, start }] of Object.entries(browsers))
  describe.skipIf(missingBroker !== undefined || path === undefined)(
    `the console by Portier in ${name}`,
    { timeout: 120_000 },
    () => {
      const alice = `alice.${name.toLowerCase()}@example.org`
      let browser: Browser
      let page: Page
      beforeAll(async () => {
        browser = await start(path!)
        page = await browser.newPage()
      })
      afterAll(() => browser?.close())

      /** Types the address on the page of the login, answers the question, and is at the broker. */
      const begin = async (at: string, mail: string) => {
        await page.bringToFront()
        await page.goto("about:blank")
        await page.goto(`${origin}/v1/console/${at}`)
        await (await page.waitForSelector("input[type=email]"))!.type(mail)
        await (await page.waitForSelector("main button[type=submit]"))!.click()
        await until(
          async () => page.url(),
          (url) => url.includes("/portier/login")
        )
        await (await page.waitForSelector("form button"))!.click()
        await page.waitForSelector("input[name=code]")
        expect(page.url()).toContain(broker.url)
      }
      const becomes = (selector: string, expected: RegExp, at = page) =>
        until(
          () => new Desk(`${origin}/v1`, at).text(selector).catch(() => "while it loads"),
          (text) => expected.test(text)
        )
      const shows = (mail: string, at = page) => becomes(".who b", new RegExp(`^${mail}$`), at)
      const stored = () => page.evaluate("JSON.stringify({ ...sessionStorage })") as Promise<string>

      it("logs in by the code of the mail, at the screen that was asked for", async () => {
        await begin("#/drafts", alice)
        await page.type("input[name=code]", (await mails.read(alice)).code)
        await page.click("button[type=submit]")
        await shows(alice)
        expect(page.url()).toBe(`${origin}/v1/console/#/drafts`)
        await page.reload()
        await shows(alice)
      })

      it("ends with the log out", async () => {
        expect(await stored()).toMatch(/Portier [0-9a-f]{64}/)
        await new Desk(`${origin}/v1`, page).press("Log out")
        await becomes("main h1", /^Log in$/)
        expect(await stored()).not.toMatch(/[0-9a-f]{64}/)
        await page.reload()
        await becomes("main h1", /^Log in$/)
      })

      it("logs in by the link of the mail, in the tab that it opens", async () => {
        const bob = `bob.${name.toLowerCase()}@example.org`
        await begin("", bob)
        const tab = await browser.newPage()
        // A page that goes on at once may end the load of the first.
        await tab.goto((await mails.read(bob)).link).catch(() => {})
        await shows(bob, tab)
        expect(tab.url()).toBe(`${origin}/v1/console/`)
        await tab.close()
      })

      it("takes no login that this browser did not begin", async () => {
        await page.bringToFront()
        await page.goto("about:blank")
        await page.goto(`${origin}/v1/console/#portier=${"0".repeat(64)}`)
        await becomes("main", /This login was not begun in this browser/)
      })
    }
  )
