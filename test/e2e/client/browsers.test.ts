// src/browser/client.js in a real Firefox that is made to be like other browsers.
import { describe, expect, it } from "vitest"
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
})
