// The manifest of src/browser/own-login.md in a real Chromium. Safari cannot be had.
import { describe, expect, it } from "vitest"
import { chromiumPath, startChromium } from "../browser.ts"
import { startPages } from "../site.ts"
import { blockOf, documentedPolicy } from "./owner.ts"

const heading = "iPhones and iPads"

describe.skipIf(chromiumPath === undefined)("the manifest of a site", () => {
  it("is found by its link under the policy, and read without an error", async () => {
    await using site = await startPages({
      "/": {
        body: `<!doctype html><title>Site</title>${blockOf(heading, "html")}`,
        headers: { "content-security-policy": `default-src 'none'; ${documentedPolicy()}` }
      },
      "/manifest.webmanifest": blockOf(heading, "json")
    })
    await using browser = await startChromium(chromiumPath!)
    const page = await browser.newPage()
    await page.goto(site.url)
    const session = await page.createCDPSession()
    const { errors, manifest, url } = await session.send("Page.getAppManifest")
    expect(errors).toEqual([])
    expect(url).toBe(`${site.url}/manifest.webmanifest`)
    expect(manifest).toMatchObject({
      name: "My site",
      startUrl: `${site.url}/`,
      display: expect.stringMatching(/standalone/i)
    })
  })
})
