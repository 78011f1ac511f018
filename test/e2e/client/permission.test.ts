// src/browser/client.js in a real Firefox: what `state` says, and the permission from undecided to
// granted, taken and granted again.
import { describe, expect, it } from "vitest"
import { until } from "#test/client.ts"
import { settled } from "#test/quiet.ts"
import { firefoxPath, setNotifications } from "../browser.ts"
import { answerPrompt } from "../firefox-windows.ts"
import { Stage } from "./stage.ts"

describe.skipIf(firefoxPath === undefined)("client.js and the permission", () => {
  const stage = new Stage("prompt")
  const set = (state: "granted" | "denied" | "prompt") =>
    setNotifications(stage.browser, stage.site.url, state)

  it("does not ask at connect; a click asks, and joins after Allow", async () => {
    const page = await stage.load()
    await stage.expect(page, "off")
    expect(await page.evaluate("Notification.permission")).toBe("default")
    await page.evaluate(`document.querySelector("button").onclick = () =>
      push.enable({ channels: ["${stage.user}"] })`)
    await page.click("button")
    await answerPrompt(page, "Allow")
    await stage.becomes(page, "on")
    expect(await page.evaluate("push.channels()")).toEqual([stage.user])
    expect(await stage.publish(page, "Hello")).toEqual(["Hello"])
  })

  it("goes on when the question is left open, and the permission granted elsewhere", async () => {
    const page = await stage.load()
    await page.evaluate(`document.querySelector("button").onclick = () => {
      window.enabling = push.enable({ channels: ["${stage.user}"] })
    }`)
    await page.click("button")
    await page.waitForFunction("'enabling' in window")
    await stage.page()
    await set("granted")
    expect(await page.evaluate("enabling")).toBe("on")
    expect(await page.evaluate("push.channels()")).toEqual([stage.user])
  })

  it("ends when the question is left open, and the permission refused elsewhere", async () => {
    const page = await stage.load()
    await page.evaluate(`document.querySelector("button").onclick = () => {
      window.enabling = push.enable()
    }`)
    await page.click("button")
    await page.waitForFunction("'enabling' in window")
    expect(await page.evaluate("push.busy")).toBe(false)
    await set("denied")
    await page.evaluate("enabling")
    await stage.expect(page, "denied")
  })

  it("says after Allow that a channel is closed", async () => {
    const page = await stage.load()
    await page.evaluate(`document.querySelector("button").onclick = () => {
      window.enabling = push.enable({ channels: ["closed", "${stage.user}"] })
    }`)
    await page.click("button")
    await answerPrompt(page, "Allow")
    expect(await page.evaluate("enabling")).toBe("on")
    await settled(() => page.evaluate("device.changes"), 1_000)
    await stage.expect(page, "on", "forbidden")
    expect(await page.evaluate("push.channels()")).toEqual([stage.user])
  })

  it.each([
    ["nobody", () => null],
    ["another user", () => `${stage.user}-b`]
  ])("subscribes no user who was followed by %s in the page before Allow", async (_, next) => {
    const page = await stage.load()
    await page.evaluate(`{
      window.first = push
      document.querySelector("button").onclick = () => { window.enabling = first.enable() }
    }`)
    await page.click("button")
    await stage.connect(page, { user: next() })
    await answerPrompt(page, "Allow")
    expect(await page.evaluate("enabling")).toBe("off")
    expect(await page.evaluate("first.error.code")).toBe("user")
    await settled(() => stage.endpoint(page), 1_000)
    expect(await stage.endpoint(page)).toBeNull()
    expect(await stage.stored()).toEqual([])
  })

  it("says denied after Block", async () => {
    const page = await stage.load()
    await page.evaluate(`document.querySelector("button").onclick = () => push.enable()`)
    await page.click("button")
    await answerPrompt(page, "Block")
    await stage.becomes(page, "denied")
    expect(await stage.stored()).toEqual([])
  })

  it("says that a click is needed when there was none", async () => {
    const options = { url: stage.service.url, worker: "/worker.js", user: stage.user }
    const query = new URLSearchParams({ enable: JSON.stringify(options) })
    const page = await stage.page(`?${query}`)
    await until(
      async () => page.url(),
      (url) => url.endsWith("#enabled")
    )
    await stage.expect(page, "off", "no-click")
    expect(await stage.record(page)).toBeUndefined()
  })

  it("says that the question was closed", async () => {
    const page = await stage.load()
    await page.evaluate(`Notification.requestPermission = async () => "default"; undefined`)
    await page.evaluate("push.enable()")
    await stage.expect(page, "off", "dismissed")
    expect(await stage.record(page)).toBeUndefined()
  })

  it("dispatches change for the last of two answers at once", async () => {
    const page = await stage.load()
    await page.evaluate(`{
      window.answer = (permission) => {
        Notification.requestPermission = async () => permission
        return push.enable()
      }
    }`)
    await page.evaluate(`Promise.all(["default", "denied"].map(answer))`)
    const shown = await stage.shown(page)
    expect(shown).toEqual({ state: "off", error: null })
    expect(await page.evaluate("device.changes.at(-1)")).toEqual(shown)
  })

  it("does not look at the device again 10 s after a load that was done", async () => {
    const page = await stage.page()
    await page.evaluate(`{
      window.later = setTimeout
      window.late = []
      window.setTimeout = (task, millis) =>
        millis === 10_000 ? late.push(task) : later(task, millis)
    }`)
    await stage.connect(page)
    const looks = await page.evaluate(`new Promise((resolve) => {
      let looks = 0
      IDBFactory.prototype.open = () => { looks += 1 }
      for (const task of late) task()
      later(() => resolve([late.length > 0, looks]), 100)
    })`)
    expect(looks).toEqual([true, 0])
    await page.reload()
  })

  it("says denied on a load where the browser denies", async () => {
    await set("denied")
    const page = await stage.load()
    await stage.expect(page, "denied")
  })

  it("says lost when the browser took the permission, and a click brings it back", async () => {
    await set("granted")
    const page = await stage.enabled()
    const before = await stage.endpoint(page)
    await set("prompt")
    await stage.becomes(page, "lost")
    await stage.reload(page)
    await stage.expect(page, "lost")
    await page.evaluate(`document.querySelector("button").onclick = () => push.enable()`)
    await page.click("button")
    await answerPrompt(page, "Allow")
    await stage.becomes(page, "on")
    expect(await stage.endpoint(page)).not.toBe(before)
    expect(await stage.stored()).toEqual([await stage.endpoint(page)])
    expect(await stage.publish(page, "Again")).toEqual(["Again"])
  })

  it("subscribes without a click when the permission is granted again", async () => {
    await set("granted")
    const page = await stage.enabled()
    await set("denied")
    await stage.becomes(page, "denied")
    await set("granted")
    await stage.becomes(page, "on")
    expect(await stage.stored()).toEqual([await stage.endpoint(page)])
  })

  it("says unsupported and install-first where there is no push", async () => {
    const page = await stage.page()
    await page.evaluate("delete window.PushManager")
    expect(await stage.connect(page)).toEqual({ state: "unsupported", error: null })
    await page.evaluate("navigator.standalone = false")
    expect(await stage.connect(page)).toEqual({ state: "install-first", error: null })
    expect(await page.evaluate("push.enable()")).toBe("install-first")
    await stage.connect(page, { user: null })
    for (const method of ["enable", "disable", "signOut"])
      expect(await page.evaluate(`push.${method}()`)).toBe("install-first")
    expect((await stage.shown(page)).error).toBeNull()
  })
})
