// Logins by the pages of the policy openid, with Keycloak's own form in a real Firefox.
import type { Browser, BrowserContext, Page } from "puppeteer-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { firefoxPath, startFirefox } from "../e2e/browser.ts"
import { password } from "./keycloak.ts"
import { claimsOf, type World } from "./keycloak-world.ts"

if (firefoxPath === undefined)
  process.stderr.write("skipped: no Firefox here (apt-get install firefox-esr)\n")

const loginUrl = ({ openid, site }: World, more = "") =>
  `${openid.url}/openid/openid/login?callback=${encodeURIComponent(`${site.url}/#token=`)}${more}`

/** Fills in Keycloak's form. */
const submit = async (page: Page, user: string) => {
  await page.type("#username", user)
  await page.type("#password", password)
  await Promise.all([page.waitForNavigation(), page.click("#kc-login")])
}

/** The token in the fragment of the site's page. */
const tokenIn = ({ site }: World, page: Page): string => {
  const [before, token] = page.url().split("#token=")
  expect(before).toBe(`${site.url}/`)
  return token!
}

/** Keycloak's redirect at the end of a login that somebody makes without a browser. */
const returnOf = async (world: World, user: string): Promise<string> => {
  const begun = await fetch(loginUrl(world), { redirect: "manual" })
  const form = await fetch(begun.headers.get("location")!)
  const [, action = ""] = /action="([^"]+)"/.exec(await form.text()) ?? []
  const cookies = form.headers.getSetCookie().map((text) => text.split(";")[0])
  const submitted = await fetch(action.replaceAll("&amp;", "&"), {
    method: "POST",
    redirect: "manual",
    headers: { cookie: cookies.join("; ") },
    body: new URLSearchParams({ username: user, password })
  })
  return submitted.headers.get("location")!
}

export const defineLogin = (world: () => World) => {
  describe.skipIf(firefoxPath === undefined)("Firefox", () => {
    let browser: Browser
    let context: BrowserContext
    let page: Page
    beforeAll(async () => {
      browser = await startFirefox(firefoxPath!)
      context = await browser.createBrowserContext()
      page = await context.newPage()
    })
    afterAll(() => browser?.close())

    it("comes back with an access token that its page uses", async () => {
      const { openid } = world()
      await page.goto(loginUrl(world()))
      expect(new URL(page.url()).origin).toBe(world().keycloak.url)
      await submit(page, "alice")
      const token = tokenIn(world(), page)
      const id = await page.evaluate(
        async (url, authorization) => {
          const response = await fetch(url, { headers: { authorization } })
          const { user } = (await response.json()) as { user: { id: string } }
          return user.id
        },
        `${openid.url}/`,
        `Bearer ${token}`
      )
      expect(id).toBe(`openid:${claimsOf(token)["sub"]}`)
      expect(openid.output()).not.toContain("eyJ")
    })

    it("gets another token without a form, and none without a session", async () => {
      const first = tokenIn(world(), page)
      await page.goto("about:blank")
      await page.goto(loginUrl(world(), "&prompt=none"))
      expect(tokenIn(world(), page)).not.toBe(first)
      const stranger = await (await browser.createBrowserContext()).newPage()
      const response = await stranger.goto(loginUrl(world(), "&prompt=none"))
      expect([response?.status(), await response?.text()]).toEqual([
        400,
        expect.stringContaining("login_required")
      ])
    })

    it("cannot be made to finish the login of somebody else", async () => {
      const { openid } = world()
      const victim = await (await browser.createBrowserContext()).newPage()
      for (const begins of [false, true]) {
        if (begins) await victim.goto(loginUrl(world()))
        const location = await returnOf(world(), "bob")
        expect(location.startsWith(`${openid.url}/openid/openid/token?`)).toBe(true)
        const other = await victim.browserContext().newPage()
        const response = await other.goto(location)
        expect([response?.status(), other.url()]).toEqual([400, location])
      }
      // The login of the browser itself goes on.
      await submit(victim, "alice")
      expect(claimsOf(tokenIn(world(), victim))["preferred_username"]).toBe("alice")
    })
  })
}
