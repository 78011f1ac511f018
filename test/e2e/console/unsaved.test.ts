// Text that is typed into a draft and not stored yet, in real browsers: none of it is lost, and
// nothing that is half typed or wrong counts.
import type { Browser, KeyInput } from "puppeteer-core"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { call, until } from "#test/client.ts"
import { startDevelopment } from "#test/development.ts"
import { secretEnvironment } from "#test/service.ts"
import { useShared } from "#test/use-service.ts"
import { idOf } from "#test/users.ts"
import { chromiumPath, firefoxPath, startChromium, startFirefox } from "../browser.ts"
import { Desk } from "./desk.ts"

const browsers = {
  Firefox: { path: firefoxPath, start: startFirefox },
  Chromium: { path: chromiumPath, start: startChromium }
} as const

const shared = useShared(async (opened) => {
  const { BELLCAST_USERID_HMAC_SECRET } = secretEnvironment
  const env = { BELLCAST_USERID_HMAC_SECRET, BELLCAST_USER_WRITE_PRINCIPALS: idOf("alice") }
  const { url } = opened.use(await startDevelopment(env))
  expect((await call(url, "PUT", "/channels/news/registration", "ann")).status).toBe(202)
  return { url }
})

const draft = async (id: string) => (await call(shared.url, "GET", `/drafts/${id}`, "alice")).body

/** A code as long as that of a service. */
const codeOf = (mail: string): string =>
  `basicauth:${Buffer.from(mail).toString("hex").padEnd(64, "0")}`

/**
 * Stands in for a policy whose users have mail addresses: a service of a development has none. The
 * page sends addresses, and the service stores codes, as it does with those of such a policy.
 */
const makeCodes = () => {
  const { fetch } = globalThis
  const codeIn = (_: string, mail: string) => {
    const digits = [...mail].map((each) => each.charCodeAt(0).toString(16))
    return `basicauth:${digits.join("").padEnd(64, "0")}`
  }
  globalThis.fetch = (url, { body, ...options } = {}) =>
    fetch(url, {
      ...options,
      ...(body && { body: String(body).replace(/portier:([^"@]+@[^"]+)/g, codeIn) })
    })
}

class Writing extends Desk {
  value = async (name: string) =>
    String(await this.page.evaluate(`document.querySelector("[name=${name}]")?.value`))

  keys = async (held: KeyInput, pressed: KeyInput): Promise<void> => {
    await this.page.keyboard.down(held)
    await this.page.keyboard.press(pressed)
    await this.page.keyboard.up(held)
  }

  /** In Firefox, three clicks do not choose the whole text of a long field. */
  replace = async (name: string, text: string): Promise<void> => {
    await this.page.focus(`[name=${name}]`)
    await this.keys("Control", "a")
    await this.page.keyboard.type(text)
  }

  hasFocus = (name: string): Promise<unknown> =>
    until(
      () => this.page.evaluate("document.activeElement.name"),
      (focused) => focused === name
    )

  /** A new draft for the channel news, which is stored. Returns its id. */
  write = async (title: string): Promise<string> => {
    await this.open("#/draft/new", "alice")
    await this.type("title", title)
    await this.type("navigate", "https://example.org/storm")
    await this.type("channel", "news")
    await this.page.keyboard.press("Enter")
    await this.becomes(".chips", /news/)
    await this.keys("Control", "s")
    await this.becomes(".foot", /Saved at [\d:]+( [AP]M)?(\s+\d|$)/)
    return this.id("draft")
  }
}

for (const [name, { path, start }] of Object.entries(browsers))
  describe.skipIf(path === undefined)(`unsaved, in ${name}`, { timeout: 120_000 }, () => {
    let browser: Browser
    let desk: Writing
    beforeAll(async () => {
      browser = await start(path!)
    })
    afterAll(() => browser?.close())
    beforeEach(async () => {
      const page = await browser.newPage()
      await page.setViewport({ width: 1280, height: 900 })
      await page.evaluateOnNewDocument(makeCodes)
      page.on("dialog", (dialog) => void dialog.accept())
      desk = new Writing(shared.url, page)
      return async () => void (page.isClosed() || (await page.close()))
    })

    it("half a mail address becomes no code", async () => {
      const id = await desk.write("Half")
      await desk.page.click(".fold summary ::-p-text(Single users)")
      await desk.type("except_users", "portier:anna@exam")
      // As browsers do when another window gets the focus.
      await desk.page.evaluate(`document.activeElement.dispatchEvent(
        new FocusEvent("focusout", { bubbles: true }))`)
      await desk.keys("Control", "s")
      await desk.becomes(".foot", /Saved at .*changed since/)
      await desk.page.keyboard.type("ple.org")
      expect(await desk.value("except_users")).toBe("portier:anna@example.org")
      await desk.page.focus("[name=title]")
      await until(
        () => desk.value("except_users"),
        (text) => text === codeOf("anna@example.org")
      )
      const except_users = [codeOf("anna@example.org")]
      expect((await draft(id)).data.to).toEqual({ channels: ["news"], except_users })
    })

    it("a list that is only typed replaces another person's after an answer only", async () => {
      const id = await desk.write("Listed")
      await desk.page.click(".fold summary ::-p-text(Single users)")
      await desk.type("except_users", "portier:anna@exam")
      const { data } = await draft(id)
      const to = { channels: ["news"], except_users: [codeOf("bob@example.org")] }
      const form = { data: { data: data.data, to } }
      const put = await call(shared.url, "PUT", `/drafts/${id}`, "alice", form, { "if-match": "*" })
      expect(put.status).toBe(200)
      // As when the window is looked at again.
      await desk.page.evaluate(`document.dispatchEvent(new Event("visibilitychange"))`)
      await desk.becomes(".box.warning", /This draft was changed/)
      expect(await desk.value("except_users")).toBe("portier:anna@exam")
      await desk.page.focus("[name=title]")
      await desk.keys("Control", "s")
      expect((await draft(id)).data.to).toEqual(to)
      await desk.press("Take theirs")
      await until(
        () => desk.value("except_users"),
        (text) => text === codeOf("bob@example.org")
      )
    })

    it("the copy of a draft that somebody deleted becomes a new draft", async () => {
      const id = await desk.write("Deleted")
      const deleted = await call(shared.url, "DELETE", `/drafts/${id}`, "alice")
      expect(deleted.status).toBe(200)
      await desk.type("body", "My copy")
      await desk.keys("Control", "s")
      await desk.becomes(".box.warning", /sent or deleted this draft/)
      await desk.page.reload()
      await desk.becomes(".box.warning", /sent or deleted this draft/)
      expect(await desk.value("body")).toBe("My copy")
      await desk.replace("body", "My later copy")
      await desk.page.reload()
      await desk.becomes(".box.warning", /sent or deleted this draft/)
      await desk.press("Go on as a new draft")
      const next = await until(
        () => desk.id("draft"),
        (each) => each !== id
      )
      await until(
        () => draft(next),
        ({ data }) => data?.data?.notification.body === "My later copy"
      )
      expect(await desk.text(".box.warning")).toBe("")
    })

    /** Requests that store are answered as `window.put` says; by default they fail. */
    const interceptPuts = () =>
      desk.page.evaluate(`{
        const { fetch } = window
        window.put = () => Promise.reject(new TypeError("offline"))
        window.mend = () => { window.fetch = fetch }
        window.fetch = (url, options) =>
          options?.method === "PUT" ? put() : fetch(url, options)
      }`)

    const leaveWith = async (title: string, body: string) => {
      await desk.replace("body", body)
      await desk.page.click("nav a")
      await desk.becomes(".box.warning", new RegExp(`“${title}” is not saved`))
    }

    it("the titles of a person's unsaved drafts are never shown to the next person", async () => {
      await desk.write("Secret")
      await interceptPuts()
      await leaveWith("Secret", "More")
      await desk.page.evaluate(`{
        window.seen = []
        const look = () => {
          const [who, main] = [".who b", "#main"].map((each) => document.querySelector(each))
          seen.push([who?.textContent, main?.textContent])
          requestAnimationFrame(look)
        }
        look()
      }`)
      await desk.press("Log out")
      await desk.page.waitForSelector("[name=user]")
      await desk.page.type("[name=user]", "bob")
      await desk.page.type("[name=password]", "secret")
      await desk.page.keyboard.press("Enter")
      await desk.becomes(".who b", /^bob$/)
      await desk.becomes("h1", /^Notifications$/)
      const seen = (await desk.page.evaluate("seen")) as ReadonlyArray<readonly [string, string]>
      const ofBob = seen.filter(([who]) => who === "bob")
      expect(ofBob.length).toBeGreaterThan(0)
      expect(ofBob.filter(([, main]) => main.includes("Secret"))).toEqual([])
    })

    it("a draft that could not be stored as it was left is tried again, and linked", async () => {
      const id = await desk.write("Left")
      const isStored = (text: string) =>
        until(
          () => draft(id),
          ({ data }) => data.data.notification.body === text
        )
      await interceptPuts()
      await leaveWith("Left", "First")
      await desk.page.evaluate("mend()")
      await isStored("First")
      await desk.becomes("#main", /^(?!.*is not saved)/s)
      await desk.page.goto(`${shared.url}/console/#/draft/${id}`)
      await desk.becomes(".toast-text", /First/)
      await interceptPuts()
      await leaveWith("Left", "Second")
      await desk.page.reload()
      await desk.becomes(".box.warning", /“Left” is not saved/)
      await desk.press("Open the draft")
      await desk.becomes(".toast-text", /Second/)
      await isStored("Second")
      expect(await desk.text(".box.warning")).toBe("")
    })

    it("Dismiss hides the box of an unsaved draft, and the window still warns", async () => {
      await desk.write("Dismissed")
      await interceptPuts()
      await leaveWith("Dismissed", "More")
      await desk.press("Dismiss", "main")
      await desk.becomes("#main", /^(?!.*is not saved)/s)
      // The page adds and removes listeners after it is painted.
      const isClosed = `new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))
        .then(() => dispatchEvent(new Event("beforeunload", { cancelable: true })))`
      expect(await desk.page.evaluate(isClosed)).toBe(false)
      await desk.page.goBack()
      await leaveWith("Dismissed", "Still more")
    })

    it("a draft is stored again by itself only where that can help, and when it may", async () => {
      const id = await desk.write("Refused")
      await interceptPuts()
      // Waits of seconds take a hundredth of their time, and are noted.
      await desk.page.evaluate(`{
        const { setTimeout } = window
        window.waits = []
        window.setTimeout = (run, millis = 0) => {
          if (millis < 2_000) return setTimeout(run, millis)
          waits.push(millis)
          return setTimeout(run, millis / 100)
        }
      }`)
      const answerPuts = (status: number, code: string, headers = {}) =>
        desk.page.evaluate(`{
          window.puts = 0
          waits.length = 0
          window.put = async () => {
            puts += 1
            const headers = ${JSON.stringify(headers)}
            return Response.json({ error_code: "${code}" }, { status: ${status}, headers })
          }
        }`)
      const puts = async () => Number(await desk.page.evaluate("puts"))
      const waits = async (leastMillis: number, mostMillis: number) =>
        ((await desk.page.evaluate("waits")) as ReadonlyArray<number>).filter(
          (millis) => millis >= leastMillis && millis <= mostMillis
        ).length
      await answerPuts(503, "overloaded", { "Retry-After": "40" })
      await leaveWith("Refused", "More")
      await desk.page.evaluate("puts = 0")
      await until(puts, (count) => count > 0)
      await until(
        () => waits(39_000, 40_000),
        (count) => count > 0
      )
      await answerPuts(403, "forbidden")
      await until(puts, (count) => count > 0)
      await desk.press("Open the draft")
      await until(puts, (count) => count > 1)
      await desk.becomes(".foot", /Not saved\./)
      expect([await puts(), await waits(5_000, 10_000)]).toEqual([2, 0])
      await answerPuts(401, "unauthenticated")
      await desk.replace("body", "Later")
      await desk.becomes("dialog", /Log in/)
      await desk.page.type("dialog [name=user]", "alice")
      await desk.page.type("dialog [name=password]", "secret")
      expect(await puts()).toBe(1)
      await desk.page.evaluate("mend()")
      await desk.page.keyboard.press("Enter")
      await until(
        () => draft(id),
        ({ data }) => data.data.notification.body === "Later"
      )
    })

    it("a line that names nobody is kept, and stops Review", async () => {
      const id = await desk.write("Line")
      await desk.page.click(".fold summary ::-p-text(Single users)")
      await desk.type("except_users", "bob@example.org")
      await desk.press("Review")
      await desk.hasFocus("except_users")
      expect(desk.page.url()).not.toContain("review")
      await desk.page.reload()
      await desk.becomes("#main", /Not an id: line 1/)
      // By the keyboard, Review takes the list while its field has the focus.
      await desk.replace("except_users", "portier:bob@example.org")
      await desk.keys("Control", "Enter")
      await desk.becomes(".review-facts", /news, without 1/)
      const except_users = [codeOf("bob@example.org")]
      expect((await draft(id)).data.to).toEqual({ channels: ["news"], except_users })
    })
  })
