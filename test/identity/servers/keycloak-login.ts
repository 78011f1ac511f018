// Logins by the pages of the policy openid, with Keycloak's own form in a real Firefox.
import type { Browser, BrowserContext, Page } from "puppeteer-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { firefoxPath, startFirefox } from "../../e2e/browser.ts"
import { password } from "./keycloak.ts"
import { claimsOf, type World } from "./keycloak-world.ts"

if (firefoxPath === undefined)
  process.stderr.write("skipped: no Firefox here (apt-get install firefox-esr)\n")

type Scheme = "https" | "http"

const loginUrl = ({ origins, site }: World, scheme: Scheme, more = "") => {
  const callback = encodeURIComponent(`${site.url}/#token=`)
  return `${origins[scheme]}/v1/openid/openid/login?callback=${callback}${more}`
}

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
const returnOf = async (begun: Response, user: string): Promise<string> => {
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

const defineScheme = (world: () => World, scheme: Scheme, firefox: () => Browser) => {
  const serviceOf = () => (scheme === "https" ? world().openid : world().plain)
  let context: BrowserContext
  let page: Page
  beforeAll(async () => {
    context = await firefox().createBrowserContext()
    page = await context.newPage()
  })

  it("comes back with an access token that its page uses", async () => {
    const { output, url, userOf } = serviceOf()
    await page.goto(loginUrl(world(), scheme))
    expect(new URL(page.url()).origin).toBe(world().keycloak.url)
    await submit(page, "alice")
    const token = tokenIn(world(), page)
    const request = async (requested: string, authorization: string) => {
      const response = await fetch(requested, { headers: { authorization } })
      const { user } = (await response.json()) as { user: { id: string } }
      return user.id
    }
    const id = `openid:${claimsOf(token)["sub"]}`
    expect(await page.evaluate(request, `${url}/`, `Bearer ${token}`)).toBe(id)
    expect((await userOf(token))?.id).toBe(id)
    expect(output()).not.toContain("eyJ")
  })

  it("gets another token without a form, and none without a session", async () => {
    const first = tokenIn(world(), page)
    await page.goto("about:blank")
    await page.goto(loginUrl(world(), scheme, "&prompt=none"))
    expect(tokenIn(world(), page)).not.toBe(first)
    const stranger = await (await firefox().createBrowserContext()).newPage()
    await stranger.goto(loginUrl(world(), scheme, "&prompt=none"))
    expect(stranger.url()).toMatch(
      new RegExp(`^${world().site.url}/#error=login_required&error_description=\\w`)
    )
  })

  it("cannot be made to finish the login of somebody else", async () => {
    const victim = await (await firefox().createBrowserContext()).newPage()
    for (const begins of [false, true]) {
      if (begins) await victim.goto(loginUrl(world(), scheme))
      // The service itself: without a browser there is no TLS to look at.
      const { pathname, search } = new URL(loginUrl(world(), scheme))
      const own = `http://127.0.0.1:${serviceOf().port}${pathname}${search}`
      const location = await returnOf(await fetch(own, { redirect: "manual" }), "bob")
      expect(new URL(location).origin).toBe(world().origins[scheme])
      const other = await victim.browserContext().newPage()
      const response = await other.goto(location)
      if (begins) expect(other.url()).toContain(`${world().site.url}/#error=invalid_request&`)
      else expect([response?.status(), other.url()]).toEqual([400, location])
    }
    // The login of the browser itself goes on.
    await submit(victim, "alice")
    expect(claimsOf(tokenIn(world(), victim))["preferred_username"]).toBe("alice")
  })

  it("has a cookie of this host alone, which pages cannot read", async () => {
    const other = await (await firefox().createBrowserContext()).newPage()
    await other.goto(loginUrl(world(), scheme))
    const cookies = await other.browserContext().cookies()
    const name = "__Host-bellcast-openid"
    const expected = { name, domain: "localhost", path: "/", httpOnly: true, secure: true }
    expect(cookies).toContainEqual(expect.objectContaining(expected))
  })
}

export const defineLogin = (world: () => World) => {
  describe.skipIf(firefoxPath === undefined)("Firefox", () => {
    let browser: Browser
    beforeAll(async () => {
      browser = await startFirefox(firefoxPath!)
    })
    afterAll(() => browser?.close())

    for (const scheme of ["https", "http"] as const)
      describe(scheme, () => defineScheme(world, scheme, () => browser))
  })
}
