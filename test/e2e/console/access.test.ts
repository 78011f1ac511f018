// The console for everybody: rules of accessibility on each screen in light and dark, at the width
// of a desk and of a phone, its strict policy, and the keyboard alone.
import { describe, expect, it } from "vitest"
import { until } from "#test/client.ts"
import { brokenRules, violationsOf } from "../access.ts"
import { chromiumPath, firefoxPath } from "../browser.ts"
import { answerPrompt } from "../firefox-windows.ts"
import { Stage } from "./stage.ts"

/** Each with what is on it once it is there. */
const screens = [
  ["#/try", "#breaks-fold", "button-name"],
  ["#/drafts", ".empty, .rows", "heading-order"],
  ["#/scheduled", ".rows", "heading-order"],
  ["#/sending", ".empty, .rows", "heading-order"],
  ["#/sent", ".rows", "heading-order"],
  ["#/stopped", ".empty, .rows", "heading-order"],
  ["#/tests", ".empty, .rows", "heading-order"],
  ["#/broadcast/{sent}", ".headline", "heading-order"],
  ["#/broadcast/{scheduled}", ".controls", "button-name"],
  ["#/nothing", ".empty", "heading-order"]
] as const

describe.skipIf(chromiumPath === undefined)("the console in Chromium", () => {
  const stage = new Stage({ browser: "chromium" })
  const { becomes } = stage

  /** Publishes as alice. Returns the id. */
  const publish = async (more: object) => {
    const notification = { title: "Hello", body: "you", navigate: "https://example.org/" }
    const response = await fetch(`${stage.service.url}/channels/news`, {
      method: "POST",
      headers: {
        authorization: `Basic ${btoa("alice:demo")}`,
        "content-type": "application/json"
      },
      body: JSON.stringify({ data: { web_push: 8030, notification }, ...more })
    })
    return ((await response.json()) as { readonly id: string }).id
  }

  /** A device, a channel, rows with details and outputs; a sent broadcast and a scheduled one. */
  const useAll = async () => {
    await becomes("#state", /^off$/)
    await stage.page.click("#enable")
    await becomes("#state", /^on$/)
    await becomes("#devices", /This browser/)
    await stage.page.click("#join button")
    await becomes("#published", /You joined sports/)
    await stage.page.click("#breaks-fold summary")
    await stage.page.click("#break-gone button")
    await becomes("#break-gone output", /410/)
    const sent = await publish({})
    const scheduled = await publish({ at: new Date(Date.now() + 86_400_000).toISOString() })
    await stage.open("#/sent")
    await becomes(".rows", /Accepted for \d of 1/)
    return { sent, scheduled }
  }
  let known: Promise<{ readonly sent: string; readonly scheduled: string }> | undefined

  const widths = [
    [1280, "a desk"],
    [390, "a phone"]
  ] as const
  for (const scheme of ["light", "dark"])
    for (const [width, name] of widths)
      it(`breaks no rule on any screen in ${scheme} at the width of ${name}`, {
        timeout: 120_000
      }, async () => {
        known ??= useAll()
        const { scheduled, sent } = await known
        await stage.page.setViewport({ width, height: 740 })
        await stage.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }])
        for (const [address, shown, judged] of screens) {
          await stage.open(address.replace("{sent}", sent).replace("{scheduled}", scheduled))
          await stage.page.waitForSelector(shown)
          const broken = await brokenRules(stage.page, ["color-contrast", judged])
          expect([address, broken]).toEqual([address, []])
          expect([address, await violationsOf(stage.page)]).toEqual([address, []])
          const sizes = "[document.documentElement.scrollWidth, innerWidth]"
          const [content, window] = (await stage.page.evaluate(sizes)) as [number, number]
          expect([address, content <= window]).toEqual([address, true])
        }
      })

  for (const scheme of ["light", "dark"])
    it(`breaks no rule in the API description, in ${scheme}`, async () => {
      const api = await stage.browser.newPage()
      await api.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }])
      await api.goto(`${stage.service.url}/__api__`)
      expect(await brokenRules(api, ["color-contrast"])).toEqual([])
      await api.close()
    })

  it("asks who one is, keeps the login over a reload, and breaks no rule there", async () => {
    await stage.press("Log out")
    await stage.page.waitForSelector("[name=user]")
    expect(await brokenRules(stage.page)).toEqual([])
    await stage.logIn("carol")
    await stage.page.reload()
    await becomes(".who b", /^carol$/)
  })

  it("gives the heading of a screen the focus, also where the header leads to it", async () => {
    const { page } = stage
    await page.setViewport({ width: 1280, height: 740 })
    // A link to the screen that is open would lead nowhere.
    await stage.open("#/drafts")
    await becomes("h1", /^Notifications$/)
    for (const [link, screen] of [
      ["Try it", /^#\/try$/],
      ["Notifications", /^#\/sent$/],
      ["New notification", /^#\/draft\/\w{9,}$/]
    ] as const) {
      await stage.press(link)
      await until(
        async () => [
          screen.test(String(await page.evaluate("location.hash"))),
          await page.evaluate("document.activeElement.localName")
        ],
        ([isThere, focused]) => isThere === true && focused === "h1"
      )
    }
    const title = await page.waitForSelector("[name=title]")
    await title!.type("Storm")
    expect(await page.evaluate("document.activeElement.name")).toBe("title")
  })

  it("leaves the focus in the header where a heading comes late", async () => {
    const { page } = stage
    await page.evaluate(`{
      const { fetch } = window
      const answers = new Promise((resolve) => { window.goOn = resolve })
      window.fetch = async (...request) => {
        await answers
        return fetch(...request)
      }
      location.hash = "#/broadcast/none"
    }`)
    await becomes("h1", /^One moment/)
    await page.focus(".who select")
    await page.evaluate("goOn()")
    await becomes("h1", /^There is nothing at this address$/)
    expect(await page.evaluate("document.activeElement.localName")).toBe("select")
  })

  it("obeys its policy, which refuses what is not of the page", async () => {
    await stage.page.evaluate(`document.body.append(
      Object.assign(document.createElement("img"), { src: "http://example.org/" }))`)
    await until(
      () => violationsOf(stage.page),
      (violations) => violations.includes("img-src")
    )
  })
})

describe.skipIf(firefoxPath === undefined)("the console in Firefox", () => {
  const stage = new Stage({ browser: "firefox", permission: "prompt" })
  const { becomes, shown } = stage

  /**
   * Moves the focus by Tab to the next control with this name, and presses a key. While a
   * notification is shown, its window has the focus, and a busy machine closes it late.
   */
  const tabTo = async (name: string, key: "Enter" | " ") => {
    const focused = `(() => {
      const { activeElement: it } = document
      if (!it.matches(":focus-visible")) return ""
      if (getComputedStyle(it).outlineStyle === "none") return "no outline"
      return it.ariaLabel ?? it.labels?.[0]?.textContent ?? it.textContent
    })()`
    const passed = new Set<string>()
    for (const end = performance.now() + 40_000; performance.now() < end; ) {
      await stage.page.keyboard.press("Tab")
      const found = (await stage.page.evaluate(focused)) as string
      expect(found).not.toBe("no outline")
      if (found === name) return stage.page.keyboard.press(key)
      passed.add(found)
    }
    const hasFocus = await stage.page.evaluate("document.hasFocus()")
    throw new Error(`no way by Tab to ${name}, only to ${[...passed]}; has focus: ${hasFocus}`)
  }
  const focused = () => stage.page.evaluate("document.activeElement.textContent")

  it("is used by the keyboard alone", { timeout: 120_000 }, async () => {
    await becomes("#state", /^off$/)
    await tabTo("Notify me", "Enter")
    await answerPrompt(stage.page, "Allow")
    await becomes("#state", /^on$/)
    expect(await focused()).toBe("Send a push")
    await stage.page.keyboard.press(" ")
    await becomes("#sent", /delivered/)
    expect(await shown()).toHaveLength(1)
    await tabTo("Join", "Enter")
    await becomes("#published", /You joined sports/)
    await tabTo("Publish", " ")
    await becomes("#published", /1 delivered/)
    expect(await shown()).toHaveLength(1)
    await tabTo("Break something", "Enter")
    // Else the next Tab moves on from this button, and beyond the last control never back.
    await Promise.all([stage.page.waitForNavigation(), tabTo("Load the page again", "Enter")])
  })

  it("keeps the focus where a button vanishes, and where a list is shown anew", {
    timeout: 120_000
  }, async () => {
    await becomes("#state", /^on$/)
    await becomes("#channels", /sports/)
    await becomes("#devices", /This browser/)
    await tabTo("Stop notifying me", "Enter")
    await becomes("#state", /^off$/)
    expect(await focused()).toBe("Notify me")
    await stage.page.keyboard.press("Enter")
    await becomes("#state", /^on$/)
    await becomes("#devices", /This browser/)
    await tabTo("Leave sports", " ")
    await becomes("#published", /You left sports/)
    expect(await stage.page.evaluate("document.activeElement.id")).toBe("channels")
    await tabTo("Send a push: This browser", "Enter")
    await becomes("#tested", /delivered/)
    expect(await focused()).toMatch(/^Send a push/)
    expect(await shown()).toHaveLength(1)
  })

  it("breaks no rule", async () => {
    expect(await brokenRules(stage.page)).toEqual([])
  })
})
