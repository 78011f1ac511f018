// src/browser/client.js in a real Firefox that is made to be like other browsers.
import { describe, expect, it } from "vitest"
import { basic } from "#test/client.ts"
import { firefoxPath } from "../browser.ts"
import { Stage } from "./stage.ts"

describe.skipIf(firefoxPath === undefined)("client.js in other browsers", () => {
  const stage = new Stage()

  it.each([
    ["de-AT", "de-AT"],
    ["en-US@posix", "en-US"],
    ["C", undefined]
  ])("enables where the browser's language is %s, with the locale %s", async (name, locale) => {
    const page = await stage.page()
    await page.evaluate(`{
      Object.defineProperty(navigator, "language", { value: "${name}" })
    }`)
    await stage.connect(page)
    await page.evaluate("push.enable()")
    await stage.expect(page, "on")
    expect((await stage.list()).map((each) => each.locale)).toEqual([locale])
  })

  it("enables without Web Locks", async () => {
    const page = await stage.page()
    await page.evaluate(`{
      Object.defineProperty(navigator, "locks", { value: undefined })
    }`)
    await stage.connect(page)
    await page.evaluate("push.enable()")
    await stage.expect(page, "on")
    await page.evaluate("push.signOut()")
    expect(await stage.stored()).toEqual([])
  })

  it("subscribes by window.pushManager, as Safari has it, where no worker is given", async () => {
    const page = await stage.page()
    await page.evaluate(`navigator.serviceWorker.register("/worker.js")
      .then(() => navigator.serviceWorker.ready)
      .then(({ pushManager }) => { window.pushManager = pushManager })`)
    const options = JSON.stringify({ url: stage.service.url, user: stage.user })
    await page.evaluate(`device.connect(${options}, ${JSON.stringify([basic(stage.user)])})`)
    await page.evaluate(`push.enable({ channels: ["${stage.user}"] })`)
    await stage.expect(page, "on")
    expect(await page.evaluate("device.scopes()")).toEqual([`${stage.site.url}/`])
    expect(await stage.stored()).toEqual([await stage.endpoint(page)])
    expect(await stage.publish(page, "Hello")).toEqual(["Hello"])
    await page.evaluate("push.signOut()")
    await stage.expect(page, "off")
    expect(await stage.endpoint(page)).toBeNull()
    expect(await stage.stored()).toEqual([])
  })

  // The last one: it changes the files of the site.
  it("takes both files from the service, in a page and a worker with COEP", async () => {
    const headers = {
      "cross-origin-embedder-policy": "require-corp",
      "cross-origin-opener-policy": "same-origin"
    }
    const { url } = stage.service
    stage.files["/"] = { body: String(stage.files["/"]), headers }
    stage.files["/client.js"] = `export * from "${url}/client.js"`
    stage.files["/worker.js"] = { body: `importScripts("${url}/worker.js")`, headers }
    const page = await stage.enabled()
    expect(await page.evaluate("crossOriginIsolated")).toBe(true)
    expect(await stage.publish(page, "From afar")).toEqual(["From afar"])
  })
})
