// Writing, reviewing and sending a notification in the console, in real browsers: what is typed is
// stored and never lost, what was reviewed is sent, and what was sent by mistake comes back.
import type { Browser, Page } from "puppeteer-core"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { call, until } from "#test/client.ts"
import { startDevelopment } from "#test/development.ts"
import { type PushService, startPushService } from "#test/push-service.ts"
import { useShared } from "#test/use-service.ts"
import { brokenRules, collectViolations, violationsOf } from "../access.ts"
import { chromiumPath, firefoxPath, startChromium, startFirefox } from "../browser.ts"

const browsers = {
  Firefox: { path: firefoxPath, start: startFirefox, package: "firefox-esr" },
  Chromium: { path: chromiumPath, start: startChromium, package: "chromium" }
} as const

/** Twelve readers of `news`, of whom alice has a browser with a name. */
const readers = 12

const shared = useShared(async (opened) => {
  const service = opened.use(await startDevelopment())
  const push: PushService = opened.use(await startPushService())
  const { url } = service
  for (let index = 0; index < readers; index++) {
    const user = index === 0 ? "alice" : `reader${index}`
    const { subscription } = push.subscribe()
    const label = index === 0 ? { label: "Firefox on Android" } : {}
    const data = { data: { ...subscription, ...label } }
    expect((await call(url, "POST", "/subscriptions", user, data)).status).toBe(201)
    expect((await call(url, "PUT", "/channels/news/registration", user)).status).toBe(202)
  }
  return { url, push }
})

interface Draft {
  readonly id: string
  readonly data?: { readonly notification: Readonly<Record<string, unknown>> }
  readonly data_by_locale?: object
  readonly to?: object
}

/** The page of one test, logged in as alice, and what a person does on it. */
class Desk {
  readonly page: Page
  constructor(page: Page) {
    this.page = page
  }

  /** Each tab has a login of its own, which a reload keeps. */
  async open(at: string) {
    await this.page.goto(`${shared.url}/console/${at}`)
    await this.page.waitForSelector("[name=user], #main h1")
    if ((await this.page.$("[name=user]")) === null) return
    await this.page.type("[name=user]", "alice")
    await this.page.type("[name=password]", "secret")
    await this.page.keyboard.press("Enter")
  }

  async type(name: string, text: string) {
    const field = await this.page.waitForSelector(`[name="${name}"]`)
    await field!.click({ count: 3 })
    await this.page.keyboard.press("Backspace")
    await field!.type(text)
  }

  async press(text: string) {
    const kinds = "self::button or self::a or self::summary"
    const found = `//*[${kinds}][contains(normalize-space(.), "${text}")]`
    const button = await this.page.waitForSelector(`::-p-xpath(${found})`)
    await button!.click()
  }

  /** As it is shown, with lines. */
  text = async (selector: string) =>
    String(await this.page.evaluate(`document.querySelector("${selector}")?.innerText ?? ""`))

  becomes = (selector: string, expected: RegExp) =>
    until(
      () => this.text(selector),
      (text) => expected.test(text)
    )

  /** Ctrl+S, and until the page says that it is stored. */
  async store() {
    await this.page.keyboard.down("Control")
    await this.page.keyboard.press("s")
    await this.page.keyboard.up("Control")
    await this.becomes(".foot", /Saved at [\d:]+( [AP]M)?\s+\d/)
  }

  /** A new draft with a title and a link to the channel news. */
  async write(title: string) {
    await this.open("#/draft/new")
    await this.type("title", title)
    await this.type("navigate", "https://example.org/storm")
    await this.type("channel", "news")
    await this.page.keyboard.press("Enter")
    await this.becomes(".reach", /12 readers on 12 browsers/)
  }
}

const drafts = async (): Promise<ReadonlyArray<Draft>> =>
  (await call(shared.url, "GET", "/drafts", "alice")).body.data
const draftCalled = async (title: string) =>
  (await drafts()).find(({ data }) => data?.notification["title"] === title)
/** Another person gives the draft a name. */
const changeAsBob = async (title: string, name: string) => {
  const { data, id, to } = (await draftCalled(title))!
  const change = { data: { data, to, name } }
  const put = await call(shared.url, "PUT", `/drafts/${id}`, "bob", change, { "if-match": "*" })
  expect(put.status).toBe(200)
}

const broadcastsCalled = async (title: string) =>
  (await call(shared.url, "GET", "/broadcasts?test=true", "alice")).body.data.filter(
    (each: { readonly title?: string }) => each.title === title
  )

for (const [name, { package: packageName, path, start }] of Object.entries(browsers)) {
  if (path === undefined)
    process.stdout.write(`no ${name} here: skipped (apt-get install ${packageName})\n`)

  describe.skipIf(path === undefined)(`a draft in ${name}`, { timeout: 120_000 }, () => {
    let browser: Browser
    let desk: Desk
    beforeAll(async () => {
      browser = await start(path!)
    })
    afterAll(() => browser?.close())
    beforeEach(async () => {
      const page = await browser.newPage()
      if (name === "Chromium") await collectViolations(page)
      await page.setViewport({ width: 1280, height: 900 })
      page.on("dialog", (dialog) => void dialog.accept())
      desk = new Desk(page)
      return async () => void (page.isClosed() || (await page.close()))
    })

    it("is stored as one types, and is there after a reload", async () => {
      const title = `Storm <b>${name}</b>`
      await desk.write(title)
      // A draft is stored while one types: first without its channel.
      await until(
        () => draftCalled(title),
        (draft) => draft?.to !== undefined
      )
      expect((await draftCalled(title))!.to).toEqual({ channels: ["news"] })
      // Markup is text, in the preview, too.
      expect(await desk.text(".toast-title")).toBe(title)
      await desk.page.reload()
      await desk.becomes(".toast-title", new RegExp(name))
      expect(await desk.page.evaluate("document.querySelector('[name=title]').value")).toBe(title)
    })

    it("keeps what could not be stored over a reload", async () => {
      const title = `Offline ${name}`
      await desk.write(title)
      await desk.store()
      await desk.page.evaluate(`{ window.fetch = () => Promise.reject(new TypeError("offline")) }`)
      await desk.type("body", "typed while offline")
      await desk.becomes(".foot", /Not saved/)
      await desk.page.reload()
      await desk.becomes(".toast-text", /typed while offline/)
      await until(
        () => draftCalled(title),
        (draft) => draft?.data?.notification["body"] === "typed while offline"
      )
    })

    it("shows another person's change, and replaces it after an answer only", async () => {
      const title = `Two ${name}`
      await desk.write(title)
      await desk.store()
      await changeAsBob(title, "theirs")
      await desk.type("body", "mine")
      await desk.becomes(".box.warning", /This draft was changed.*theirs/s)
      expect((await draftCalled(title))!.data!.notification["body"]).toBeUndefined()
      await desk.press("Keep mine, replace theirs")
      await until(
        () => draftCalled(title),
        (draft) => draft?.data?.notification["body"] === "mine"
      )
    })

    it("says what is wrong in words, and cannot be reviewed before", async () => {
      await desk.open("#/draft/new")
      await desk.type("title", "A")
      await desk.type("navigate", "javascript:alert(1)")
      await desk.page.keyboard.press("Tab")
      await desk.becomes("#main", /web addresses only/)
      await desk.type("channel", "nobody-is-here")
      await desk.page.keyboard.press("Enter")
      await desk.becomes(".chip.wrong", /nobody has joined it/)
      await desk.press("Review")
      await until(
        () => desk.page.evaluate("document.activeElement.name"),
        (focused) => focused === "navigate"
      )
      expect(desk.page.url()).not.toContain("review")
    })

    it("goes to one's own browser as a test, at once", async () => {
      await desk.write(`Test ${name}`)
      const before = shared.push.counts.total
      await desk.press("Send a test")
      await desk.becomes(".device", /Firefox on Android.*push service took it \(201\)/s)
      expect(shared.push.counts.total).toBe(before + 1)
    })

    it("is sent as it was reviewed, and can be taken back for ten seconds", async () => {
      const title = `Back ${name}`
      await desk.write(title)
      await desk.press("Review")
      await desk.press("Send to 12 readers now")
      await desk.becomes(".leaving", /Nobody has got it yet/)
      await desk.press("Take it back")
      await desk.becomes(".toast-title", new RegExp(title))
      expect(await draftCalled(title)).toMatchObject({ to: { channels: ["news"] } })
      const [broadcast] = await broadcastsCalled(title)
      expect(broadcast).toMatchObject({ state: "cancelled", accepted: 0 })
    })

    it("that somebody changed after the review is not sent before it was seen", async () => {
      const title = `Changed ${name}`
      await desk.write(title)
      await desk.press("Review")
      await desk.becomes(".send", /Send to 12 readers now/)
      await changeAsBob(title, "other")
      await desk.press("Send to 12 readers now")
      await desk.becomes(".box.warning", /after you saw it.*Name for the desk.*other/s)
      expect(await broadcastsCalled(title)).toEqual([])
      await desk.press("Send to 12 readers now")
      await desk.becomes(".leaving", new RegExp(title))
      await desk.page.close()
      // A closed tab sends all the same.
      await until(
        () => broadcastsCalled(title),
        ([sent]) => sent?.delivered === readers,
        30_000
      )
    })

    it("is scheduled in the zone of the reader, with its text in two languages", async () => {
      const title = `Later ${name}`
      await desk.write(title)
      await desk.press("Add a language")
      const field = await desk.page.waitForSelector(".add-locale input")
      await field!.type("de")
      await desk.page.keyboard.press("Enter")
      await desk.page.waitForSelector("[name=title][lang=de]")
      await desk.type("title", "Später")
      await desk.page.click("[name=when][value=at]")
      await desk.becomes(".at", /In your zone:.*in \d/s)
      await desk.press("Review")
      await desk.press("Schedule for 12 readers")
      await until(
        () => broadcastsCalled(title),
        ([sent]) => sent?.state === "scheduled"
      )
      const [{ id }] = await broadcastsCalled(title)
      const whole = (await call(shared.url, "GET", `/broadcasts/${id}`, "alice")).body.data
      expect(whole.data_by_locale.de.notification).toMatchObject({
        title: "Später",
        navigate: "https://example.org/storm"
      })
    })

    it("keeps day and time while its year is typed", async () => {
      const title = `Typed ${name}`
      await desk.write(title)
      await desk.page.click("[name=when][value=at]")
      const field = await desk.page.waitForSelector("[name=at]")
      const shown = () => desk.page.evaluate("document.querySelector('[name=at]').value")
      const suggested = String(await shown())
      const year = Number(suggested.slice(0, 4)) + 1
      // The focus is in the first part: month, day and year of en-US.
      await field!.focus()
      for (const key of [..."12", ..."24", ...String(year)])
        await desk.page.keyboard.press(key as "1")
      expect(await shown()).toBe(`${year}-12-24${suggested.slice(10)}`)
      await desk.becomes(".at", new RegExp(String(year)))
    })

    it("takes a variant of a language by its tag, and no name of a language", async () => {
      await desk.write(`Formal ${name}`)
      await desk.press("Add a language")
      const field = await desk.page.waitForSelector(".add-locale input")
      await field!.type("German\n")
      await desk.becomes(".add-locale", /This is no language/)
      await field!.click({ count: 3 })
      await field!.type("de-x-formal\n")
      await desk.page.waitForSelector("[name=title][lang=de-x-formal]")
      await desk.type("title", "Sehr geehrte")
      await desk.store()
      await desk.page.reload()
      await desk.becomes(".locales", /de-x-formal/)
    })

    it("breaks no rule of accessibility, and no policy of the page", async () => {
      await desk.write(`Rules ${name}`)
      await desk.press("More: story")
      await desk.press("Add a button")
      for (const scheme of ["light", "dark"] as const) {
        await desk.page
          .emulateMediaFeatures?.([{ name: "prefers-color-scheme", value: scheme }])
          .catch(() => undefined)
        for (const width of [1280, 390]) {
          await desk.page.setViewport({ width, height: 900 })
          expect([scheme, width, await brokenRules(desk.page)]).toEqual([scheme, width, []])
        }
      }
      await desk.type("button-0-title", "Map")
      await desk.press("Review")
      await desk.becomes(".send", /Send to 12 readers now/)
      expect(await brokenRules(desk.page)).toEqual([])
      if (name === "Chromium") expect(await violationsOf(desk.page)).toEqual([])
    })
  })
}
