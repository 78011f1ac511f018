// Published notifications, once more, in real browsers: a scheduled one is changed in place or
// becomes a draft, one that is being sent is stopped in its row, and readers by name come back to
// who named them, and to nobody else.
import type { Browser } from "puppeteer-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call } from "#test/client.ts"
import { startDevelopment } from "#test/development.ts"
import { startPushService } from "#test/push-service.ts"
import { secretEnvironment } from "#test/service.ts"
import { useShared } from "#test/use-service.ts"
import { idOf, tokenOf } from "#test/users.ts"
import { brokenRules } from "../access.ts"
import { chromiumPath, firefoxPath, startChromium, startFirefox } from "../browser.ts"
import { addReaders, Desk } from "./desk.ts"

const browsers = {
  Firefox: { path: firefoxPath, start: startFirefox },
  Chromium: { path: chromiumPath, start: startChromium }
} as const

const shared = useShared(async (opened) => {
  const BELLCAST_USER_WRITE_PRINCIPALS = `${idOf("alice")} ${idOf("berta")}`
  const { BELLCAST_USERID_HMAC_SECRET } = secretEnvironment
  const env = { BELLCAST_USERID_HMAC_SECRET, BELLCAST_USER_WRITE_PRINCIPALS }
  const { url } = opened.use(await startDevelopment(env))
  // At one push a second, a broadcast is being sent for a minute.
  const push = opened.use(await startPushService({ decrypt: false }))
  await addReaders(url, push, 3)
  for (const user of ["ann", "bob"])
    expect((await call(url, "PUT", "/channels/news/registration", user)).status).toBe(202)
  return { url }
})

/** Tomorrow, as alice published it. Returns the id. */
const schedule = async (more: object = {}, headers = {}): Promise<string> => {
  const notification = { title: "Dear Ann", navigate: "https://example.org/", tag: "letter" }
  const sent = {
    data: { web_push: 8030, notification },
    at: new Date(Date.now() + 86_400_000).toISOString(),
    to: { channels: ["news"] },
    ...more
  }
  const { body, status } = await call(shared.url, "POST", "/broadcasts", "alice", sent, headers)
  expect(status).toBe(202)
  return body.id
}

const letter = { to: { channels: ["news"], users: [idOf("ann")], except_users: [idOf("bob")] } }
const named = {
  channels: ["news"],
  users: [`pseudonym:${tokenOf("ann")}`],
  except_users: [`pseudonym:${tokenOf("bob")}`]
}

const read = async (path: string, user = "alice") =>
  (await call(shared.url, "GET", path, user)).body.data

for (const [name, { path, start }] of Object.entries(browsers))
  describe.skipIf(path === undefined)(
    `what was published, in ${name}`,
    {
      timeout: 120_000
    },
    () => {
      let browser: Browser
      let desk: Desk
      beforeAll(async () => {
        browser = await start(path!)
      })
      afterAll(() => browser?.close())

      /** A new tab, in which a user looks at a broadcast. */
      const look = async (id: string, user: string, more = "") => {
        const page = await browser.newPage()
        await page.setViewport({ width: 1280, height: 900 })
        desk = new Desk(shared.url, page)
        await desk.open(`#/broadcast/${id}${more}`, user)
      }

      it("is edited in place: text, image, language, time and speed", async () => {
        const id = await schedule({ rate: 10 })
        const { at } = await read(`/broadcasts/${id}`)
        await look(id, "alice")
        await desk.press("Edit")
        await desk.becomes(".foot", /Nothing changed yet/)
        await desk.type("title", "Dear all")
        await desk.type("image", "https://example.org/a.png")
        await desk.press("Add a language")
        await desk.page.type(".add-locale input", "de")
        await desk.page.keyboard.press("Enter")
        await desk.page.waitForSelector("[name=title][lang=de]")
        await desk.press("Save the change")
        // The screen says what is missing, and stores nothing.
        await desk.becomes(".field .wrong", /Without a title/)
        expect((await read(`/broadcasts/${id}`)).title).toBe("Dear Ann")
        await desk.type("title", "Liebe alle")
        await desk.page.select("[name=rate]", "100")
        if (name === "Chromium") expect(await brokenRules(desk.page)).toEqual([])
        await desk.press("Save the change")
        await desk.becomes(".said-whole", /Dear all.*at most 100 pushes/s)
        const changed = await read(`/broadcasts/${id}`)
        expect(changed).toMatchObject({
          ...{ at, rate: 100, state: "scheduled", title: "Dear all" },
          data: { notification: { image: "https://example.org/a.png", tag: "letter" } },
          data_by_locale: { de: { notification: { title: "Liebe alle" } } }
        })
      })

      it("is not saved over another's change before that was seen and answered", async () => {
        const id = await schedule()
        const found = await read(`/broadcasts/${id}`)
        const changeAsBerta = async (data: object) => {
          const answer = await call(shared.url, "PATCH", `/broadcasts/${id}`, "berta", { data })
          expect(answer.status).toBe(200)
        }
        const titled = (title: string) => ({
          data: { ...found.data, notification: { ...found.data.notification, title } }
        })
        await look(id, "alice", "/edit")
        await desk.type("title", "Dear all")
        await changeAsBerta(titled("Dear Berta"))
        await desk.press("Save the change")
        await desk.becomes(".box.warning", /Somebody else changed.*Dear all\s+Dear Berta/s)
        await desk.becomes(".foot", /Not saved: choose/)
        expect((await read(`/broadcasts/${id}`)).title).toBe("Dear Berta")
        if (name === "Chromium") expect(await brokenRules(desk.page)).toEqual([])
        await desk.press("Take theirs")
        await desk.becomes(".foot", /Nothing changed yet/)
        await desk.type("title", "Dear one and all")
        // A change of what Edit does not show is no other form.
        await changeAsBerta(titled("Dear Berta"))
        await desk.press("Save the change")
        await desk.becomes(".said-whole", /Dear one and all/)
        await desk.press("Edit")
        await desk.type("title", "Dear readers")
        await changeAsBerta({ rate: 10 })
        await desk.press("Save the change")
        await desk.press("Keep mine, replace theirs")
        await desk.becomes(".said-whole", /Dear readers/)
      })

      it("says in Edit what stays, and that it is too late once it has begun", async () => {
        const id = await schedule()
        await look(id, "alice", "/edit")
        await desk.becomes("[aria-labelledby=audience]", /news.*stay as they are.*Unschedule/s)
        await desk.type("title", "Too late")
        await call(shared.url, "PATCH", `/broadcasts/${id}`, "berta", {
          data: { state: "cancelled" }
        })
        await desk.press("Save the change")
        await desk.becomes(".box.warning", /It is too late to edit it/)
      })

      it("gives its publisher the readers by name back with Unschedule", async () => {
        const id = await schedule(letter)
        await look(id, "alice")
        await desk.press("Unschedule")
        await desk.becomes("dialog", /becomes a draft/)
        expect(await desk.text("dialog")).not.toMatch(/will lack/)
        await desk.press("Unschedule, open the draft", "dialog")
        const draft = await desk.id("draft")
        expect((await read(`/drafts/${draft}`)).to).toEqual(named)
        await desk.page.waitForSelector("[name=users]")
        const shown = await desk.page.$eval("[name=users]", ({ value }) => value)
        expect(shown).toBe(named.users[0])
        await desk.becomes("[aria-labelledby=audience]", /the service keeps no names/)
      })

      it("gives them back with Correct and send, too, and how it is sent", async () => {
        const id = await schedule(letter, { ttl: "60", urgency: "high", topic: "letters" })
        await call(shared.url, "PATCH", `/broadcasts/${id}`, "alice", {
          data: { state: "cancelled" }
        })
        await look(id, "alice")
        await desk.press("Correct and send")
        const draft = await read(`/drafts/${await desk.id("draft")}`)
        expect(draft).toMatchObject({ to: named, ttl: 60, urgency: "high", topic: "letters" })
      })

      it("says what another editor's copy lacks, before it is made", async () => {
        const id = await schedule({ to: { channels: ["news"], except_users: [idOf("bob")] } })
        await look(id, "berta")
        await desk.page.goto(`${shared.url}/console/#/scheduled`)
        const row = `.row:has([href="#/broadcast/${id}"])`
        await (await desk.page.waitForSelector(`${row} [aria-label^=Duplicate]`))!.click()
        await desk.becomes("dialog", /will lack the 1 reader by name.*Enter them again/s)
        await desk.press("Duplicate without them", "dialog")
        const draft = await desk.id("draft")
        expect((await read(`/drafts/${draft}`, "berta")).to).toEqual({ channels: ["news"] })
      })

      it("stops what is being sent in its row, as its screen does", async () => {
        const id = await schedule({ at: undefined, rate: 1 })
        await look(id, "alice")
        await desk.page.goto(`${shared.url}/console/#/sending`)
        const row = `.row:has([href="#/broadcast/${id}"])`
        const stop = await desk.page.waitForSelector(`${row} [aria-label^="Stop: "]`)
        if (name === "Chromium") expect(await brokenRules(desk.page)).toEqual([])
        await stop!.click()
        await desk.page.waitForFunction(`!document.querySelector(${JSON.stringify(row)})`)
        expect((await read(`/broadcasts/${id}`)).state).toBe("cancelled")
        await desk.press("Stopped")
        await desk.page.waitForSelector(row)
        expect(await desk.page.$(`${row} [aria-label^="Stop: "]`)).toBeNull()
      })

      it("offers no copy of a letter to who may not read it", async () => {
        const id = await schedule(letter)
        await look(id, "berta")
        await desk.becomes("#main", /is shown to .* alone/)
        expect(await desk.text("#main")).not.toMatch(/Dear Ann|Duplicate/)
        await desk.press("Unschedule")
        await desk.becomes("dialog", /will not be sent.*alone/s)
        await desk.press("Unschedule", "dialog")
        await desk.becomes("#main .heading .badge", /^Stopped$/)
        const drafts = (await read("/drafts", "berta")) as ReadonlyArray<{ readonly to?: object }>
        expect(drafts.filter(({ to }) => to === undefined)).toEqual([])
      })
    }
  )
