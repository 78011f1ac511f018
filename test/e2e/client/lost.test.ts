// src/browser/client.js in a real Firefox: subscriptions that were lost, moved, rotated, removed at
// the service, or made by an earlier page.
import { describe, expect, it } from "vitest"
import { call } from "#test/client.ts"
import { firefoxPath } from "../browser.ts"
import { Stage } from "./stage.ts"

describe.skipIf(firefoxPath === undefined)("client.js brings back", () => {
  const stage = new Stage()

  it("nothing where nobody pressed, and stores nothing", async () => {
    const page = await stage.load()
    await stage.expect(page, "off")
    expect(await stage.record(page)).toBeUndefined()
    expect(await stage.stored()).toEqual([])
  })

  it("nothing on a visit that changes nothing: it writes nothing", async () => {
    const page = await stage.enabled()
    const [before, revision] = [await stage.record(page), await stage.revision()]
    await stage.age(page)
    await stage.reload(page)
    await stage.expect(page, "on")
    expect(await stage.revision()).toBe(revision)
    expect(await stage.record(page)).toMatchObject({
      endpoint: before.endpoint,
      renewal: before.renewal
    })
  })

  it("a subscription that is gone while it is wanted, in the place of the old one", async () => {
    const page = await stage.enabled()
    const before = await stage.endpoint(page)
    await page.evaluate("device.unsubscribe()")
    await stage.reload(page)
    await stage.expect(page, "on")
    const after = await stage.endpoint(page)
    expect(after).not.toBe(before)
    expect(await stage.stored()).toEqual([after])
    expect(await stage.publish(page, "News")).toEqual(["News"])
  })

  it("nothing that the user switched off", async () => {
    const page = await stage.enabled()
    await page.evaluate("push.disable()")
    await stage.expect(page, "off")
    expect(await stage.endpoint(page)).toBeNull()
    expect(await stage.stored()).toEqual([])
    await stage.reload(page)
    await stage.expect(page, "off")
    expect(await stage.endpoint(page)).toBeNull()
  })

  it("a subscription that the service does not know", async () => {
    const page = await stage.enabled()
    await call(stage.service.url, "DELETE", "/subscriptions", stage.user)
    await stage.age(page)
    await stage.reload(page)
    await stage.expect(page, "on")
    expect(await stage.stored()).toEqual([await stage.endpoint(page)])
  })
})
