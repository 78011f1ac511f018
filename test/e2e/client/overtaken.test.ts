// src/browser/client.js in a real Firefox: of several pages, the one that names its user last has
// the browser.
import { describe, expect, it } from "vitest"
import { firefoxPath } from "../browser.ts"
import { Stage } from "./stage.ts"

describe.skipIf(firefoxPath === undefined)("client.js and pages of several users", () => {
  const stage = new Stage()
  const second = () => `${stage.user}b`

  it("lets an old page of the first user do nothing to the second", async () => {
    const old = await stage.enabled()
    const page = await stage.enabled({ user: second() })
    const endpoint = await stage.endpoint(page)
    await old.evaluate("dispatchEvent(new Event('online'))")
    await stage.becomes(old, "off")
    await old.evaluate("push.enable()")
    await stage.expect(old, "off", "user")
    expect(await stage.endpoint(page)).toBe(endpoint)
    expect((await stage.record(page)).user).toBe(second())
  })

  it("takes the browser where the clock was ahead when another user came", async () => {
    const page = await stage.enabled()
    await page.evaluate("device.change({ since: Date.now() + 3_600_000 })")
    await stage.reload(page, { user: second() })
    await stage.expect(page, "off")
    expect((await stage.record(page)).user).toBe(second())
  })

  it("signs out, and lets the next user of the same page in", async () => {
    const page = await stage.enabled()
    await page.evaluate("push.signOut()")
    await stage.connect(page, { user: second() })
    await page.evaluate("push.enable()")
    await stage.expect(page, "on")
    expect((await stage.record(page)).user).toBe(second())
  })

  it("keeps the subscription of the last of two users whom one page names", async () => {
    const page = await stage.enabled()
    const endpoint = await stage.endpoint(page)
    await page.reload()
    await stage.connectAll(page, [{ user: null }, {}])
    await stage.becomes(page, "on")
    expect(await stage.endpoint(page)).toBe(endpoint)
  })

  it("lets a page whose first load failed do nothing to a user who came later", async () => {
    delete stage.files["/late.js"]
    const old = await stage.page()
    await stage.connect(old, { user: second(), worker: "/late.js" })
    await stage.expect(old, "off", "worker")
    const page = await stage.enabled()
    const endpoint = await stage.endpoint(page)
    stage.files["/late.js"] = stage.files["/worker.js"]!
    await old.evaluate("dispatchEvent(new Event('online'))")
    await stage.becomes(old, "off")
    expect(await stage.endpoint(page)).toBe(endpoint)
    expect((await stage.record(page)).user).toBe(stage.user)
  })
})
