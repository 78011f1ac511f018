// src/browser/client.js in a real Firefox: a site that moves its worker to another scope.
import { describe, expect, it } from "vitest"
import { call } from "#test/client.ts"
import { firefoxPath } from "../browser.ts"
import { Stage } from "./stage.ts"

describe.skipIf(firefoxPath === undefined)("client.js and a worker that moved", () => {
  const stage = new Stage()
  const second = () => `${stage.user}b`
  const old = { worker: "/old/worker.js" }
  const endpoints = "device.endpoints()"

  /** A page of a device that is on by the old worker. */
  const enabled = async () => {
    stage.files["/old/worker.js"] = stage.files["/worker.js"]!
    return stage.enabled(old)
  }

  it("brings the wish along, and the service has one subscription at any time", async () => {
    await stage.service.kill()
    await stage.startService({ BELLCAST_SUBSCRIPTIONS_PER_USER_MAX: "1" })
    const page = await enabled()
    await stage.reload(page)
    await stage.expect(page, "on")
    expect(await page.evaluate(endpoints)).toEqual(await stage.stored())
    expect(await stage.publish(page, "Moved")).toEqual(["Moved"])
  })

  it("joins the channels that were chosen while the old worker was there", async () => {
    stage.files["/old/worker.js"] = stage.files["/worker.js"]!
    await stage.service.kill()
    const page = await stage.load(old)
    await page.evaluate(`push.enable({ channels: ["${stage.user}"] })`)
    await stage.startService()
    await stage.reload(page)
    await stage.expect(page, "on")
    expect(await page.evaluate("push.channels()")).toEqual([stage.user])
  })

  it.each([
    ["nobody", null],
    ["another user", "another"]
  ])("unsubscribes the old one for %s", async (_, user) => {
    const page = await enabled()
    await stage.reload(page, { user })
    await stage.expect(page, "off")
    expect(await page.evaluate(endpoints)).toEqual([])
    expect(await page.evaluate("device.scopes()")).toEqual([`${stage.site.url}/`])
    // The first user's wish stays for the return, which removes the old one from the service.
    expect(await stage.stored()).toHaveLength(1)
    await stage.reload(page)
    await stage.expect(page, "on")
    expect(await page.evaluate(endpoints)).toEqual(await stage.stored())
    expect(await stage.stored()).toHaveLength(1)
  })

  it("unsubscribes the old one for a user who does not want it", async () => {
    const page = await enabled()
    await page.evaluate(`device.change({ on: { "${stage.user}": false } }, "/old/")`)
    await stage.reload(page)
    await stage.expect(page, "off")
    expect(await page.evaluate(endpoints)).toEqual([])
    expect(await stage.stored()).toEqual([])
    expect((await call(stage.service.url, "GET", "/subscriptions", second())).body.data).toEqual([])
  })
})
