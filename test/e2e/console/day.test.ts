// A day at the desk, in real browsers: write, look, test, schedule, take it back, send to 2,000
// browsers, see a typo, stop, correct, send, and read the report.
import type { Browser } from "puppeteer-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, until } from "#test/client.ts"
import { startDevelopment } from "#test/development.ts"
import { startPushService } from "#test/push-service.ts"
import { useShared } from "#test/use-service.ts"
import { chromiumPath, firefoxPath, startChromium, startFirefox } from "../browser.ts"
import { addReaders, browsersEach, Desk } from "./desk.ts"

const browsers = {
  Firefox: { path: firefoxPath, start: startFirefox },
  Chromium: { path: chromiumPath, start: startChromium }
} as const

const readers = 100
const all = (readers * browsersEach).toLocaleString("en")

const shared = useShared(async (opened) => {
  const { url } = opened.use(await startDevelopment())
  // Its work is not what is tested here.
  const push = opened.use(await startPushService({ decrypt: false }))
  await addReaders(url, push, readers)
  const { subscription } = push.subscribe()
  const data = { ...subscription, label: "Firefox on Android" }
  expect((await call(url, "POST", "/subscriptions", "alice", { data })).status).toBe(201)
  return { url }
})

const broadcast = async (id: string) =>
  (await call(shared.url, "GET", `/broadcasts/${id}`, "alice")).body.data

for (const [name, { path, start }] of Object.entries(browsers))
  describe.skipIf(path === undefined)(`a day at the desk in ${name}`, () => {
    let browser: Browser
    let desk: Desk
    beforeAll(async () => {
      browser = await start(path!)
      const page = await browser.newPage()
      await page.setViewport({ width: 1280, height: 900 })
      desk = new Desk(shared.url, page)
    })
    afterAll(() => browser?.close())

    /** A busy machine may not store the draft at once: the page says so, and one presses again. */
    const review = () =>
      until(
        async () => {
          await desk.page.evaluate("document.querySelector('.foot .prominent')?.click()")
          return desk.page.url().endsWith("/review")
        },
        (isThere) => isThere
      )

    /** From the review to the screen of what is being sent. Returns the id. */
    const send = async () => {
      await review()
      await desk.press("Send to 100 readers now")
      await desk.becomes(".leaving", /Nobody has got it yet/)
      return desk.id("broadcast")
    }

    /** A draft, with its preview beside it, and a test to one's own device. */
    const drafts = async () => {
      await desk.open("#/sent", "alice")
      await desk.press("New notification")
      await desk.type("title", `Strom warning ${name}`)
      await desk.type("body", "Ferries stop at 16:00.")
      await desk.type("navigate", "https://example.org/storm")
      await desk.type("image", `${shared.url}/console/icon.svg`)
      await desk.becomes(".toast-title", /^Strom warning/)
      await desk.type("channel", "news")
      await desk.page.keyboard.press("Enter")
      await desk.becomes(".reach", new RegExp(`100 readers on ${all} browsers`))
      await desk.press("Send a test")
      await desk.becomes(".device", /Firefox on Android.*push service took it/s)
    }

    const schedulesAndTakesBack = async () => {
      await desk.page.click("[name=when][value=at]")
      await desk.becomes(".at", /In your zone/)
      await review()
      await desk.press("Schedule for 100 readers")
      const scheduled = await desk.id("broadcast")
      await desk.becomes(".sentence", /^Starts in \d+ (h|min)/)
      await desk.press("Unschedule")
      await desk.press("Unschedule, open the draft", "dialog")
      const draft = await desk.id("draft")
      expect((await broadcast(scheduled)).state).toBe("cancelled")
      await desk.becomes(".toast-title", /^Strom warning/)
      const { body } = await call(shared.url, "GET", `/drafts/${draft}`, "alice")
      expect(body.data).toMatchObject({ to: { channels: ["news"] } })
      expect(body.data.at).toBeUndefined()
    }

    const sendsAndStops = async () => {
      await desk.page.waitForSelector("[name=rate]")
      // 40 s for all: also on a busy machine the stop comes before the end.
      await desk.page.select("[name=rate]", "50")
      const id = await send()
      await desk.becomes(".sentence", /^Accepted for \d+ of /)
      const began = performance.now()
      await desk.press("Stop")
      await desk.becomes("#main .heading .badge", /^Stopped$/)
      process.stdout.write(`stopped after ${Math.round(performance.now() - began)} ms\n`)
      await desk.becomes(
        ".sentence",
        /^Stopped by you\. Accepted for [\d,]+, [\d,]+ will never get it\.$/
      )
      // The state is first; the workers then record what each push ended with.
      const { cancelled, state } = await until(
        () => broadcast(id),
        ({ accepted, cancelled, delivered }) => delivered + cancelled === accepted
      )
      expect(state).toBe("cancelled")
      expect(cancelled).toBeGreaterThan(0)
      await desk.becomes(".headline", new RegExp(`${cancelled.toLocaleString("en")}\\s+Stopped`))
    }

    /** The second broadcast takes the place of the first. */
    const correctsAndSends = async () => {
      const first = await broadcast(await desk.id("broadcast"))
      await desk.press("Correct and send")
      await desk.becomes(".toast-title", /^Strom warning/)
      await desk.type("title", `Storm warning ${name}`)
      await desk.page.select("[name=rate]", "")
      await desk.becomes(".toast-title", /^Storm warning/)
      const second = await broadcast(await send())
      await desk.becomes(".sentence", new RegExp(`^Done\\. Accepted for ${all} of ${all}\\.$`))
      expect(second.title).toBe(`Storm warning ${name}`)
      expect(second.data.notification.tag).toBe(first.data.notification.tag)
      await desk.becomes(".headline", new RegExp(`^${all}\\s+Accepted\\s+100%`))
      await desk.becomes(".report", /By push service/)
      await desk.press("All that was sent")
      await desk.becomes(".rows", new RegExp(`Storm warning ${name}.*by you`, "s"))
    }

    it("goes from a draft to the report of what was corrected and sent again", {
      timeout: 300_000
    }, async () => {
      await drafts()
      await schedulesAndTakesBack()
      await sendsAndStops()
      await correctsAndSends()
    })
  })
