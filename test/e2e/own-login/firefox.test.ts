// The page of src/browser/own-login.md in a real Firefox: a site in Express with the blocks of the
// document, two users of one browser, and pushes that the server of the site publishes.
import type { Browser, Page } from "puppeteer-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { errors, states } from "#browser/client/words.ts"
import { startAutopush } from "#test/autopush.ts"
import { call, until } from "#test/client.ts"
import { firefoxPath, setNotifications, startFirefox } from "../browser.ts"
import { answerPrompt } from "../firefox-windows.ts"
import { blockOf, documentedPolicy, type Owner, startExpress, startOwner } from "./owner.ts"

describe.skipIf(firefoxPath === undefined)("a site with its own login", () => {
  const opened = new AsyncDisposableStack()
  let owner: Owner
  let browser: Browser
  let page: Page
  /** The token of the site's server. */
  let token: string
  beforeAll(async () => {
    owner = opened.use(await startOwner())
    const autopush = opened.use(await startAutopush())
    // The page's icon is a data URL; everything else is what the document says.
    const policy = `default-src 'none'; ${documentedPolicy().replace("img-src", "img-src data:")}`
    opened.use(await startExpress(owner, policy))
    browser = opened.use(await startFirefox(firefoxPath!, autopush.socketUrl))
    await setNotifications(browser, owner.site, "prompt")
    page = await browser.newPage()
    await page.goto(owner.site)
    token = await owner.run(blockOf("6. Publish", "sh", "token create"))
  })
  afterAll(() => opened.disposeAsync())

  /** The sentence beside each button. */
  const sentences: Readonly<Record<string, string>> = {
    "Notify me": states.off,
    "Stop notifications": states.on
  }

  const expectPage = async (button: string | null) => {
    const text = sentences[button ?? ""] ?? ""
    const bell = `({ button: bell.hidden ? null : bell.textContent,
      text: document.querySelector("#bell-says").textContent })`
    const read = async () => (await page.evaluate(bell)) as { button: string; text: string }
    const isThere = (seen: Awaited<ReturnType<typeof read>>) =>
      seen.button === button && seen.text === text
    expect(await until(() => read().catch(() => ({ button: "", text: "" })), isThere)).toBeDefined()
  }

  const press = (selector: string) =>
    Promise.all([page.waitForNavigation(), page.click(`${selector} button`)])

  /** Texts of all notifications; they are closed. */
  const taken = async () =>
    (await page.evaluate(`navigator.serviceWorker.getRegistration("/")
      .then((it) => it.getNotifications())
      .then((all) => all.map((each) => (each.close(), each.body)))`)) as ReadonlyArray<string>
  const shown = () => until(taken, ({ length }) => length > 0)

  /** Runs the block that publishes there; the counts once all pushes have ended. */
  const published = async (path: "/channels/news" | "/broadcasts") => {
    const { url } = JSON.parse(await owner.run(blockOf("6. Publish", "sh", path), token))
    const headers = { authorization: `Bearer ${token}` }
    const read = () => call(url, "GET", "", undefined, undefined, headers)
    return (await until(read, ({ body }) => body.data?.finished === true)).body.data
  }

  it("shows nothing to visitors, and a button to users, which subscribes", async () => {
    await expectPage(null)
    await press("#login42")
    await expectPage("Notify me")
    await page.click("#bell")
    await answerPrompt(page, "Allow")
    await expectPage("Stop notifications")
    expect(await published("/channels/news")).toMatchObject({ accepted: 1, delivered: 1 })
    expect(await shown()).toEqual(["News for all"])
    expect(await published("/broadcasts")).toMatchObject({ accepted: 1, delivered: 1 })
    expect(await shown()).toEqual(["It is on its way"])
  })

  it("gives a second user nothing of the first, and no pushes without a click", async () => {
    await press("#logout")
    await expectPage(null)
    expect(await published("/broadcasts")).toMatchObject({ accepted: 0, without_subscription: 1 })
    await press("#login43")
    await expectPage("Notify me")
    expect(await published("/channels/news")).toMatchObject({ accepted: 0 })
    await page.click("#bell")
    await expectPage("Stop notifications")
    expect(await published("/channels/news")).toMatchObject({ accepted: 1, delivered: 1 })
    expect(await shown()).toEqual(["News for all"])
    expect(await published("/broadcasts")).toMatchObject({ accepted: 0 })
  })

  it("goes on for the first user at the return, without a click", async () => {
    await press("#logout")
    await press("#login42")
    await expectPage("Stop notifications")
    expect(await published("/broadcasts")).toMatchObject({ accepted: 1, delivered: 1 })
    expect(await shown()).toEqual(["It is on its way"])
    expect(await published("/channels/news")).toMatchObject({ accepted: 1, delivered: 1 })
  })

  it("stops by the button, and by the logout everywhere until the next login", async () => {
    await page.click("#bell")
    await expectPage("Notify me")
    expect(await published("/broadcasts")).toMatchObject({ accepted: 0 })
    await page.click("#bell")
    await expectPage("Stop notifications")
    expect(await published("/broadcasts")).toMatchObject({ accepted: 1, delivered: 1 })
    await owner.run(blockOf("Logout", "sh"), token)
    expect(await published("/broadcasts")).toMatchObject({ accepted: 0, without_subscription: 1 })
    await press("#logout")
    await press("#login42")
    await expectPage("Stop notifications")
    expect(await published("/broadcasts")).toMatchObject({ accepted: 1, delivered: 1 })
  })

  it("obeys the policy of the document, also with a nonce", async () => {
    for (const query of ["", "?nonce"]) {
      await page.goto(`${owner.site}/${query}`)
      await expectPage("Stop notifications")
      expect(await page.evaluate("violations")).toEqual([])
    }
  })

  it("lets other scripts of the page have the client, for a page of preferences", async () => {
    const channels = `import("/push.js").then(async ({ push }) => {
      await push.join("sports")
      const joined = await push.channels()
      await push.leave("sports")
      return joined
    })`
    expect(await page.evaluate(channels)).toEqual(["news", "sports"])
  })

  it("says in words, with the code beside, that the session has ended", async () => {
    // A load in which nothing changed asks for no token.
    await page.reload()
    await expectPage("Stop notifications")
    await page.evaluate(`document.cookie = "user=; max-age=0"`)
    await page.evaluate(`import("/push.js").then(({ push }) => push.check())`)
    const says = `[document.querySelector("#bell-says").textContent,
      document.querySelector("#bell-says").title]`
    expect(await page.evaluate(says)).toEqual([errors.login, "login"])
    await page.evaluate(`document.cookie = "user=42"`)
    await page.reload()
    await expectPage("Stop notifications")
  })

  it("sends no cookie of the site with any request to the service", async () => {
    expect(await page.evaluate("document.cookie")).toContain("user=42")
    expect(await (await fetch(`${owner.site}/cookies`)).json()).toEqual([])
  })

  it("shows a push once by a worker that was there already", async () => {
    await taken()
    const isActive = `navigator.serviceWorker.register("/sw.js")
      .then(({ active }) => active?.scriptURL.endsWith("/sw.js"))`
    await until(
      () => page.evaluate(isActive),
      (active) => active === true
    )
    expect(await published("/channels/news")).toMatchObject({ accepted: 1, delivered: 1 })
    expect(await shown()).toEqual(["News for all"])
  })
})
