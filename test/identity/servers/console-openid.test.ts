// The console by logins at a real Keycloak, in real browsers: the console has an origin of its own,
// a reload keeps the login, what was typed outlives a login that ends, and another person's login
// takes over nothing.
import type { Browser, BrowserContext, Page } from "puppeteer-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { until } from "#test/client.ts"
import { settingsIn } from "#test/identity/document.ts"
import { startNats } from "#test/nats.ts"
import { claimPort } from "#test/ports.ts"
import { startService } from "#test/service.ts"
import { chromiumPath, firefoxPath, startChromium, startFirefox } from "../../e2e/browser.ts"
import { Desk } from "../../e2e/console/desk.ts"
import {
  clientSecret,
  type Keycloak,
  missingKeycloak,
  password,
  startKeycloak
} from "./keycloak.ts"
import { section } from "./keycloak-world.ts"
import { makeRealm, realm } from "./realm.ts"

if (missingKeycloak !== undefined) process.stderr.write(`skipped: ${missingKeycloak}\n`)

const browsers = {
  Firefox: { path: firefoxPath, start: startFirefox },
  Chromium: { path: chromiumPath, start: startChromium }
} as const

const opened = new AsyncDisposableStack()
let keycloak: Keycloak
/** The origin of the console; its logins return to the service at another one. */
let origin: string

beforeAll(async () => {
  if (missingKeycloak !== undefined) return
  const port = await claimPort()
  origin = `http://localhost:${port}`
  keycloak = opened.use(await startKeycloak())
  await makeRealm(keycloak, {
    redirectUris: [`http://127.0.0.1:${port}/v1/openid/openid/token`],
    publicKey: {}
  })
  const env = {
    ...settingsIn(section)[0]!,
    BELLCAST_AUTH_OPENID_ISSUER: `${keycloak.url}/realms/${realm}`,
    BELLCAST_AUTH_OPENID_CLIENT_SECRET: clientSecret,
    BELLCAST_HTTP_SCHEME: "http",
    BELLCAST_HTTP_HOST: `127.0.0.1:${port}`,
    BELLCAST_CONSOLE_ORIGIN: origin
  }
  const nats = opened.use(await startNats())
  const roles = "gateway,projection,fanout"
  opened.use(await startService({ natsUrl: nats.url, port, roles, env }))
}, 300_000)
afterAll(() => opened.disposeAsync())

/** How long the tokens live that Keycloak gives to the pages from now on. */
const setLifespan = async (seconds: number) => {
  const [client] = await keycloak.admin("GET", `/${realm}/clients?clientId=page`)
  const attributes = { ...client.attributes, "access.token.lifespan": `${seconds}` }
  await keycloak.admin("PUT", `/${realm}/clients/${client.id}`, { ...client, attributes })
}

for (const [name, { path, start }] of Object.entries(browsers))
  describe.skipIf(missingKeycloak !== undefined || path === undefined)(
    `the console by Keycloak in ${name}`,
    { timeout: 120_000 },
    () => {
      let browser: Browser
      let context: BrowserContext
      let page: Page
      let desk: Desk
      /** Questions of the browser whether one wants to leave the page. */
      const asked: Array<string> = []
      const begin = async () => {
        context = await browser.createBrowserContext()
        page = await context.newPage()
        await page.setViewport({ width: 1280, height: 900 })
        page.on("dialog", (dialog) => {
          asked.push(dialog.message())
          void dialog.accept()
        })
        desk = new Desk(`${origin}/v1`, page)
      }
      beforeAll(async () => {
        browser = await start(path!)
        await begin()
      })
      afterAll(() => browser?.close())

      const isAt = (url: string) =>
        until(
          async () => page.url(),
          (now) => now.startsWith(url)
        )
      /** Presses the button that leads to Keycloak, and fills in its form. */
      const logIn = async (user: string, within = "*") => {
        await desk.press("Log in with openid", within)
        await isAt(keycloak.url)
        await page.waitForSelector("#username")
        await page.type("#username", user)
        await page.type("#password", password)
        await page.click("#kc-login")
        await isAt(`${origin}/v1/console/`)
      }
      /** Another person at the same computer. Keycloak knows nobody any more. */
      const forget = async () => {
        const cookies = await context.cookies()
        await context.deleteCookie(...cookies.filter(({ name }) => /KEYCLOAK|AUTH/.test(name)))
      }
      const stored = () => page.evaluate("JSON.stringify({ ...sessionStorage })") as Promise<string>
      const shows = (user: string) =>
        until(
          () => desk.text(".who b").catch(() => "while it loads"),
          (shown) => shown === `${user} Example`
        )

      it("comes back to the screen that was asked for, and a reload keeps the login", async () => {
        await page.goto(`${origin}/v1/console/#/drafts`)
        await logIn("alice")
        await shows("alice")
        expect(page.url()).toBe(`${origin}/v1/console/#/drafts`)
        await page.reload()
        await shows("alice")
        expect(page.url()).toBe(`${origin}/v1/console/#/drafts`)
      })

      it("keeps what was typed over a login that ended, and asks nothing on the way", async () => {
        // Long enough to type, on a busy machine, too.
        await setLifespan(20)
        try {
          await desk.press("Log out")
          await desk.press("Log in with openid")
          await shows("alice")
        } finally {
          await setLifespan(300)
        }
        await desk.press("New notification")
        const id = await desk.id("draft")
        await desk.type("title", `Half of ${name}`)
        await desk.becomes("dialog", /Your login has ended/)
        await desk.press("Log in with openid", "dialog")
        await until(
          () => desk.text("dialog").catch(() => "while it loads"),
          (text) => text === ""
        )
        await shows("alice")
        expect(await desk.id("draft")).toBe(id)
        await until(
          () => page.$eval("[name=title]", ({ value }) => value),
          (title) => title === `Half of ${name}`
        )
        expect(asked).toEqual([])
      })

      it("says when another person enters, who gets nothing that was typed", async () => {
        const id = await desk.id("draft")
        // Nothing can be stored any more.
        await page.evaluate(`fetch = ((original) => (url, wanted) => wanted.method === "PUT"
          ? Promise.reject(new TypeError("no network")) : original(url, wanted))(fetch)`)
        await desk.type("body", "written by alice")
        await desk.becomes(".foot", /Not saved/)
        expect(await stored()).toContain("written by alice")
        // The login of this tab is over, as after a night.
        await page.evaluate(`{
          const kept = JSON.parse(sessionStorage["bellcast-console-session"])
          kept.authorization = "Bearer " + "x".repeat(20)
          sessionStorage["bellcast-console-session"] = JSON.stringify(kept)
        }`)
        await page.goto("about:blank")
        await forget()
        await page.goto(`${origin}/v1/console/#/draft/${id}`)
        await logIn("bob")
        await shows("bob")
        await desk.becomes("main .box", /You are now bob Example.*page of alice Example/s)
        expect(page.url()).not.toContain(id)
        await page.goto(`${origin}/v1/console/#/draft/${id}`)
        await desk.becomes("h1", /This draft is gone/)
        expect(await page.$("[name=title]")).toBeNull()
        // The draft is there when alice is.
        await desk.press("Log out")
        await forget()
        await page.goto("about:blank")
        await page.goto(`${origin}/v1/console/#/draft/${id}`)
        await logIn("alice")
        await shows("alice")
        await until(
          () => page.$eval("[name=body]", ({ value }) => value).catch(() => ""),
          (body) => body === "written by alice"
        )
      })

      it("asks in an open page before another person takes it over", async () => {
        const { access_token: token } = await keycloak.tokens(realm, "page", "bob")
        await desk.press("New notification")
        await desk.type("title", "alice writes")
        // As if the token of alice had ended.
        await page.evaluate(`fetch = ((original) => (url, wanted) => {
          const { Authorization: by } = wanted.headers
          return by === "Bearer ${token}" ? original(url, wanted) : Promise.resolve(new Response(
            JSON.stringify({ error_code: "unauthenticated" }), { status: 401 }))
        })(fetch)`)
        await desk.becomes("dialog", /Your login has ended/)
        await page.click("dialog details summary")
        // To type so many characters takes a driven browser half a minute.
        await page.evaluate(`{
          const field = document.querySelector("dialog details input")
          field.value = ${JSON.stringify(token)}
          field.dispatchEvent(new Event("input", { bubbles: true }))
        }`)
        await desk.press("Log in", "dialog//details")
        await desk.becomes("dialog", /logged in as bob Example\. .*opened by alice Example/)
        expect(await desk.text(".who b")).toBe("alice Example")
        await desk.press("Become bob Example")
        await shows("bob")
        await desk.becomes("main .box", /You are now bob Example/)
        expect(page.url()).toMatch(/#\/sent$/)
        const drafts = await fetch(`${origin}/v1/drafts`, {
          headers: { authorization: `Bearer ${token}` }
        })
        expect(await drafts.text()).not.toContain("alice writes")
      })

      it("ends with the log out, and says that Keycloak's login goes on", async () => {
        await begin()
        await page.goto(`${origin}/v1/console/`)
        await logIn("alice")
        await shows("alice")
        expect(await stored()).toContain("eyJ")
        await desk.press("Log out")
        await desk.becomes("main", /You are logged out here.*goes on/)
        expect(await stored()).not.toContain("eyJ")
        await page.reload()
        await desk.becomes("main h1", /^Log in$/)
      })

      it("takes no login that this browser did not begin", async () => {
        const { access_token: token } = await keycloak.tokens(realm, "page", "bob")
        for (const begun of ["", "begun=0123456789abcdef&"]) {
          await page.goto("about:blank")
          await page.goto(`${origin}/v1/console/#${begun}openid=${token}`)
          await desk.becomes("main", /This login was not begun in this browser/)
          expect(page.url()).not.toContain("eyJ")
          expect(await stored()).not.toContain("eyJ")
        }
        await page.goto("about:blank")
        await page.goto(`${origin}/v1/console/#error=a&error_description=Call%20this%20number`)
        await desk.becomes("main", /This login was not begun in this browser/)
        expect(await desk.text("main")).not.toContain("number")
      })

      it("says why Keycloak refused a login, and begins anew where it was", async () => {
        await forget()
        await page.goto("about:blank")
        await page.goto(`${origin}/v1/console/#/scheduled`)
        await desk.press("Log in with openid")
        await isAt(keycloak.url)
        // As Keycloak returns whom it asked in vain.
        const { searchParams } = new URL(page.url())
        const back = new URL(searchParams.get("redirect_uri")!)
        back.searchParams.set("state", searchParams.get("state")!)
        back.searchParams.set("iss", `${keycloak.url}/realms/${realm}`)
        back.searchParams.set("error", "access_denied")
        await page.goto(back.href)
        await desk.becomes("main", /The login was cancelled/)
        await logIn("carol")
        await shows("carol")
        expect(page.url()).toBe(`${origin}/v1/console/#/scheduled`)
      })
    }
  )
