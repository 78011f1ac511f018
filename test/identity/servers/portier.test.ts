// Logins by mail with a real Portier broker and real browsers, on the page that the README shows,
// by http on this machine and by https.
import type { Browser, BrowserContext, Page } from "puppeteer-core"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { until } from "#test/client.ts"
import { secretsIn, tracesOf } from "#test/leaks.ts"
import { chromiumPath, firefoxPath, startChromium, startFirefox } from "../../e2e/browser.ts"
import { missingBroker } from "./portier-broker.ts"
import { type Front, origins, type Stage, startStage } from "./portier-stage.ts"

if (missingBroker !== undefined) process.stderr.write(`tests are skipped: ${missingBroker}\n`)

const browsers = {
  Firefox: {
    path: firefoxPath,
    start: startFirefox,
    package: "firefox-esr",
    algorithm: "RS256"
  },
  Chromium: { path: chromiumPath, start: startChromium, package: "chromium", algorithm: "EdDSA" }
} as const

let stage: Stage
/** Texts that must not be found anywhere afterwards. */
const secrets: Array<string> = []
const broadcasts: Array<string> = []

const timeout = 60_000
/** Of one step. */
const patienceMillis = 20_000

/** Types the address into the page of the site, and is at the broker afterwards. */
const begin = async (page: Page, front: Front, email: string) => {
  // Chromium draws no page behind another, and a page that is not drawn takes no clicks.
  await page.bringToFront()
  await page.goto(front.page)
  await page.type("input[name=email]", email)
  await page.click("button")
  await until(
    async () => page.url(),
    (url) => new URL(url).origin === stage.broker.url
  )
  await page.waitForSelector("input[name=code]")
}

const type = async (page: Page, code: string) => {
  await page.bringToFront()
  await page.waitForSelector("input[name=code]")
  await page.type("input[name=code]", code)
  await page.click("button[type=submit]")
}

/** The token of the session with which the browser comes back to the site. */
const tokenOf = async (page: Page, front: Front): Promise<string> => {
  await until(
    async () => page.url(),
    (url) => url === front.page
  )
  await page.waitForFunction('document.title.startsWith("portier:")')
  const token = (await page.evaluate('sessionStorage.getItem("token")')) as string
  expect(token).toMatch(/^[0-9a-f]{64}$/)
  secrets.push(token)
  return token
}

const read = async (email: string) => {
  const mail = await stage.mails.read(email)
  secrets.push(email, mail.code, mail.code.replace(" ", ""), mail.link)
  return mail
}

const login = async (page: Page, front: Front, email: string) => {
  await begin(page, front, email)
  await type(page, (await read(email)).code)
  return tokenOf(page, front)
}

/** What the page of the site says after a login that failed. */
const errorAt = async (page: Page, front: Front): Promise<string> => {
  await page.waitForFunction('document.querySelector("output")?.textContent')
  expect(page.url()).toBe(front.page)
  return (await page.evaluate('document.querySelector("output").textContent')) as string
}

/** The page of the service in a browser that did not begin a login. */
const refusalAt = async (page: Page, { api }: Front): Promise<string> => {
  await until(
    async () => page.url(),
    (url) => url === `${api}/portier/verify`
  )
  await page.waitForSelector("h1")
  return (await page.evaluate("document.body.innerText")) as string
}

/** A request that the page of the site sends, with the token of its session. */
const callFrom = async (page: Page, url: string, method: string, data?: unknown) => {
  const body = data === undefined ? "" : `, body: ${JSON.stringify(JSON.stringify({ data }))}`
  return (await page.evaluate(`(async () => {
    const authorization = "Portier " + sessionStorage.getItem("token")
    const headers = { authorization, "content-type": "application/json" }
    const response = await fetch("${url}", { method: "${method}", headers${body} })
    return { status: response.status, location: response.headers.get("location") }
  })()`)) as { status: number; location: string | null }
}

beforeAll(async () => {
  if (missingBroker === undefined) stage = await startStage()
}, timeout)
afterAll(() => stage?.[Symbol.asyncDispose]())

for (const [name, { algorithm, package: packageName, path, start }] of Object.entries(browsers)) {
  if (path === undefined)
    process.stdout.write(`no ${name} here: skipped (apt-get install ${packageName})\n`)

  describe.skipIf(missingBroker !== undefined || path === undefined)(name, { timeout }, () => {
    let browser: Browser
    let context: BrowserContext
    let page: Page
    let plain: Front
    const emailOf = (part: string) => `${name.toLowerCase()}.${part}@example.org`

    beforeAll(async () => {
      browser = await start(path!)
      context = await browser.createBrowserContext()
      plain = stage.fronts.get(origins[0])!
    }, timeout)
    afterAll(() => browser?.close())
    beforeEach(async () => {
      page = await context.newPage()
      page.setDefaultTimeout(patienceMillis)
    })
    afterEach(() => page.close())

    for (const origin of origins)
      it(`logs in at ${origin}, subscribes, joins, publishes and receives`, async () => {
        const front = stage.fronts.get(origin)!
        const { api } = front
        const channel = `news-${name}-${origin.replaceAll(/\W/g, "")}`
        const agent = stage.pushService.subscribe()
        const reader = await context.newPage()
        await login(reader, front, emailOf(`reader${origins.indexOf(origin)}`))
        const subscribed = await callFrom(
          reader,
          `${api}/subscriptions`,
          "POST",
          agent.subscription
        )
        expect(subscribed.status).toBe(201)
        const joined = await callFrom(reader, `${api}/channels/${channel}/registration`, "PUT")
        expect(joined.status).toBe(202)
        const refused = await callFrom(reader, `${api}/channels/${channel}`, "POST", { n: 1 })
        expect(refused.status).toBe(403)
        await login(page, front, "editor@example.org")
        const published = await callFrom(page, `${api}/channels/${channel}`, "POST", { n: 1 })
        expect(published.status).toBe(202)
        broadcasts.push(published.location!.split("/").at(-1)!)
        await stage.pushService.waitFor(() => agent.received.length > 0)
        expect(agent.received.map(({ text }) => text)).toEqual(['{"n":1}'])
        await reader.close()
      })

    it("takes the link of the mail in the browser that began, and in no other", async () => {
      const email = emailOf("link")
      const other = await browser.createBrowserContext()
      const stranger = await other.newPage()
      await begin(page, plain, email)
      await stranger.goto((await read(email)).link)
      await stranger.click("button[type=submit]")
      expect(await refusalAt(stranger, plain)).toContain("type the code there")
      await other.close()
      await begin(page, plain, email)
      const tab = await context.newPage()
      await tab.goto((await read(email)).link).catch(() => {})
      await tokenOf(tab, plain)
      await tab.close()
    })

    it("asks before a link begins a login, and then logs in", async () => {
      const fields = { email: emailOf("mailed"), redirect: `${plain.page}#token=` }
      await page.goto(`${plain.api}/portier/login?${new URLSearchParams(fields)}`)
      await page.click("button")
      await type(page, (await read(fields.email)).code)
      await tokenOf(page, plain)
    })

    it("logs in after a wrong code, and after one that the user gave up", async () => {
      await begin(page, plain, emailOf("typo"))
      await begin(page, plain, emailOf("code"))
      const { code } = await read(emailOf("code"))
      await type(page, "wrong1 wrong1")
      await page.waitForSelector(".error")
      await type(page, code)
      await tokenOf(page, plain)
    })

    it("ends the later of two logins at a time, and refuses the earlier one", async () => {
      const later = await context.newPage()
      await begin(page, plain, emailOf("first"))
      await begin(later, plain, emailOf("second"))
      await type(page, (await read(emailOf("first"))).code)
      expect(await errorAt(page, plain)).toContain("a later one took its place")
      await type(later, (await read(emailOf("second"))).code)
      await tokenOf(later, plain)
      await later.close()
    })

    it("shows the error of a broker that refuses an address", async () => {
      await page.goto(plain.page)
      await page.type("input[name=email]", "someone@blocked.example")
      await page.click("button")
      expect(await errorAt(page, plain)).not.toBe("")
    })

    it("logs in by the new keys and the one algorithm of a broker that was away", async () => {
      const heartbeatOf = async ({ service }: Front) => {
        const response = await fetch(`${service.url}/__heartbeat__`)
        return ((await response.json()) as { portier: boolean }).portier
      }
      // Each gateway has read the broker's document for itself.
      const heartbeats = () => Promise.all([...stage.fronts.values()].map(heartbeatOf))
      const isDown = async () => void (await until(heartbeats, (all) => !all.includes(true)))
      await stage.restartBroker(algorithm, isDown)
      await until(heartbeats, (all) => !all.includes(false))
      await begin(page, plain, emailOf("after"))
      expect(new URL(page.url()).searchParams.get("id_token_signing_alg")).toBe(algorithm)
      await type(page, (await read(emailOf("after"))).code)
      await tokenOf(page, plain)
    })
  })
}

it.skipIf(missingBroker !== undefined)(
  "leaves no address, token, code or link",
  async () => {
    expect(broadcasts.length).toBeGreaterThan(0)
    const places = await tracesOf({
      services: [...stage.fronts.values()].map(({ service }) => service),
      natsUrl: stage.nats.url,
      folder: stage.nats.folder,
      broadcasts
    })
    expect(places.get("audit")).toContain("portier:")
    expect(secretsIn(places, [...new Set(secrets)])).toEqual([])
  },
  timeout
)
