// src/browser/client.js in a real Firefox: several pages of one user, and pages that come back.
import type { Page } from "puppeteer-core"
import { describe, expect, it } from "vitest"
import { until } from "#test/client.ts"
import { firefoxPath } from "../browser.ts"
import { Stage } from "./stage.ts"

describe.skipIf(firefoxPath === undefined)("client.js in several pages", () => {
  const stage = new Stage()
  stage.files["/elsewhere"] = `<!doctype html><title>Without the client</title>
    <script type="module">import { change } from "/records.js"; window.change = change</script>`

  it("shows in each page what a button did in another one", async () => {
    const first = await stage.load()
    const second = await stage.load()
    await first.evaluate("push.enable()")
    await stage.becomes(second, "on")
    await second.evaluate("push.disable()")
    await stage.becomes(first, "off")
    expect(await first.evaluate("device.changes.map(({ state }) => state)")).toContain("off")
  })

  it("shows in each page that the user signed out in another one", async () => {
    const first = await stage.enabled()
    const second = await stage.load()
    await stage.expect(second, "on")
    await first.evaluate("push.signOut()")
    await stage.becomes(second, "off")
  })

  it("says no error any more where another page made device and service agree", async () => {
    const first = await stage.enabled()
    await stage.age(first)
    const second = await stage.page()
    await second.evaluate(
      `window.real = fetch; window.fetch = async () => { throw new TypeError() }`
    )
    await stage.connect(second)
    await stage.expect(second, "on", "offline")
    await first.evaluate("push.check()")
    await stage.becomes(second, "on")
  })

  it("tells no other page of a load that changed nothing", async () => {
    const first = await stage.enabled()
    await first.evaluate(`{
      window.heard = 0
      new BroadcastChannel("bellcast").onmessage = () => { heard += 1 }
    }`)
    const second = await stage.load()
    await stage.expect(second, "on")
    await second.evaluate("push.check()")
    await until(
      () => first.evaluate("heard"),
      (heard) => heard === 1
    )
  })

  /** Leaves the page; what `away` does there, no other page is told. */
  const leaveAndReturn = async (page: Page, away: string) => {
    await page.evaluate(`addEventListener("pageshow", ({ persisted }) => {
      window.isBack = persisted
    })`)
    await page.goto(`${stage.site.url}/elsewhere`)
    await page.waitForFunction("window.change")
    await page.evaluate(away)
    // Not `goBack`: puppeteer waits for a load, which does not come.
    await page.evaluate("history.back()")
    await until(
      () => page.evaluate("window.isBack").catch(() => false),
      (isBack) => isBack === true
    )
  }

  it("looks again when a page comes back from the browser's cache", async () => {
    stage.files["/"] = { body: String(stage.files["/"]), headers: { "cache-control": "max-age=0" } }
    const page = await stage.enabled()
    await leaveAndReturn(page, `change({ on: { "${stage.user}": false } })`)
    await stage.becomes(page, "off")
    expect(await stage.endpoint(page)).toBeNull()
  })
})
