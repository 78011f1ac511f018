// Logins at the console by a link, in real browsers: the token of the link stays nowhere, one
// person's link takes nobody else's place, and a page of another origin can do nothing with the
// console.
import type { Browser, Page } from "puppeteer-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { until } from "#test/client.ts"
import { startNats } from "#test/nats.ts"
import { claimPort } from "#test/ports.ts"
import { runCli } from "#test/run-cli.ts"
import { startService } from "#test/service.ts"
import { useShared } from "#test/use-service.ts"
import { chromiumPath, firefoxPath, startChromium, startFirefox } from "./browser.ts"
import { startPages } from "./site.ts"

const browsers = {
  Firefox: { path: firefoxPath, start: startFirefox, package: "firefox-esr" },
  Chromium: { path: chromiumPath, start: startChromium, package: "chromium" }
} as const

const shared = useShared(async (opened) => {
  const port = await claimPort()
  const origin = `http://127.0.0.1:${port}`
  const env = {
    BELLCAST_AUTH_POLICIES: "signed",
    BELLCAST_AUTH_SIGNED_SECRETS: "the-secret-of-the-site-and-of-Bellcast",
    BELLCAST_AUTH_SIGNED_AUDIENCE: "bellcast",
    BELLCAST_CONSOLE_ORIGIN: origin
  }
  const nats = opened.use(await startNats())
  const roles = "gateway,projection"
  opened.use(await startService({ natsUrl: nats.url, port, roles, env }))
  const page = `${origin}/v1/console/`
  const foreign = opened.use(
    await startPages({
      "/": "<!doctype html><title>Another site</title>",
      "/framing": `<!doctype html><iframe src="${page}"></iframe>`
    })
  )
  return { page, foreign, env }
})

const linkFor = async (user: string): Promise<string> =>
  (await runCli(["sign-user", user, "--console"], shared.env)).stdout.trimEnd()

const textOf = (page: Page) =>
  (page.evaluate("document.body?.innerText ?? ''") as Promise<string>).catch(() => "")
const shows = (page: Page, text: RegExp) =>
  until(
    () => textOf(page),
    (shown) => text.test(shown)
  )
const session = (page: Page) =>
  page.evaluate("sessionStorage.getItem('bellcast-console-session')") as Promise<string>

for (const [name, { package: packageName, path, start }] of Object.entries(browsers)) {
  if (path === undefined)
    process.stdout.write(`no ${name} here: skipped (apt-get install ${packageName})\n`)

  describe.skipIf(path === undefined)(name, { timeout: 60_000 }, () => {
    let browser: Browser
    let page: Page
    /** Reports of the browser about policies that were broken. */
    const broken: Array<string> = []
    beforeAll(async () => {
      browser = await start(path!)
      page = await browser.newPage()
      page.on("console", (message) => {
        if (/Content.Security.Policy|TrustedHTML|TrustedScript/i.test(message.text()))
          broken.push(message.text())
      })
    })
    afterAll(() => browser?.close())

    it("logs in the user of a link, whose token stays in no address, across reloads", async () => {
      const link = await linkFor("anna")
      await page.goto(link)
      await shows(page, /Logged in as\s+anna/)
      expect(page.url()).not.toMatch(/login|eyJ/)
      await page.reload()
      await shows(page, /Logged in as\s+anna/)
      expect(await session(page)).not.toContain(link.split("#login=")[1])
      expect(broken).toEqual([])
    })

    it("keeps the login when the same link is opened again, which opens no session", async () => {
      const used = await linkFor("anna")
      const before = await session(page)
      await page.goto("about:blank")
      await page.goto(used)
      const kept = await until(
        () => session(page).catch(() => before),
        (now) => now !== before
      )
      await page.goto("about:blank")
      const refused = page.waitForResponse((response) => response.url().endsWith("/session"))
      await page.goto(used)
      expect((await refused).status()).toBe(400)
      await shows(page, /Logged in as\s+anna/)
      expect(await session(page)).toBe(kept)
      expect(page.url()).not.toMatch(/login|eyJ/)
    })

    it("asks before another's link takes the place of a login, also in an open page", async () => {
      const kept = await session(page)
      const link = await linkFor("bob")
      // As a link in the address bar does: the page stays, its fragment changes.
      await page.evaluate(`location.hash = ${JSON.stringify(new URL(link).hash)}`)
      await shows(page, /bob/)
      expect(page.url()).not.toMatch(/login|eyJ/)
      expect(await session(page)).toBe(kept)
      expect(broken).toEqual([])
    })

    it("asks before another person's link takes the place of a pasted token, too", async () => {
      await page.evaluate("sessionStorage.clear()")
      await page.goto("about:blank")
      await page.goto(shared.page)
      const token = (await runCli(["sign-user", "carl"], shared.env)).stdout.trimEnd()
      await (await page.waitForSelector("details summary"))?.click()
      await page.type("details input", token)
      await page.keyboard.press("Enter")
      await shows(page, /Logged in as\s+carl/)
      const link = await linkFor("bob")
      await page.evaluate(`location.hash = ${JSON.stringify(new URL(link).hash)}`)
      await shows(page, /bob/)
      expect(await textOf(page)).toMatch(/Logged in as\s+carl/)
      expect(page.url()).not.toMatch(/login|eyJ/)
    })

    // Firefox shows its refusal as a page that never ends to load.
    it.runIf(name === "Chromium")("is framed by no page of another origin", async () => {
      await page.goto(`${shared.foreign.url}/framing`)
      const shown = await Promise.all(
        page.frames().map((frame) => frame.$("#console").catch(() => null))
      )
      expect(shown).toEqual([null, null])
    })

    it("lets no page of another origin use a link, which then still works", async () => {
      const link = await linkFor("anna")
      await page.goto(shared.foreign.url)
      const token = link.split("#login=")[1]
      const body = JSON.stringify({ data: { token } })
      const post = (headers: string) =>
        page.evaluate(`fetch("${shared.page}session", {
          method: "POST", headers: ${headers}, body: ${JSON.stringify(body)}
        }).then(({ status }) => status, () => "refused")`)
      expect(await post('{ "content-type": "application/json" }')).toBe("refused")
      expect(await post('{ "content-type": "text/plain" }')).toBe("refused")
      await page.goto(link)
      await shows(page, /anna/)
    })
  })
}
