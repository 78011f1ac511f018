// src/browser/client.js in a real Firefox: the channels that a button chooses, also while the
// service is away, and those that the service refuses.
import { describe, expect, it } from "vitest"
import { firefoxPath } from "../browser.ts"
import { Stage } from "./stage.ts"

describe.skipIf(firefoxPath === undefined)("client.js and channels", () => {
  const stage = new Stage()

  it("says forbidden for a closed channel, and joins the others", async () => {
    const page = await stage.load()
    await page.evaluate(`push.enable({ channels: ["closed", "open-${stage.user}"] })`)
    await stage.expect(page, "on", "forbidden")
    expect(await page.evaluate("push.channels()")).toEqual([`open-${stage.user}`])
    const code = await page.evaluate("push.join('closed').catch(({ code }) => code)")
    expect(code).toBe("forbidden")
  })

  it("says limit where a quota is used up", async () => {
    const page = await stage.load()
    for (const number of [1, 2, 3]) await page.evaluate(`push.join("limit ü ${number}")`)
    const code = await page.evaluate("push.join('four').catch(({ code }) => code)")
    expect(code).toBe("limit")
    await page.evaluate("push.leave('limit ü 2')")
    expect(await page.evaluate("push.channels()")).toEqual(["limit ü 1", "limit ü 3"])
  })

  it("joins all channels of several clicks while the service was away", async () => {
    await stage.service.kill()
    const page = await stage.load()
    await page.evaluate(`push.enable({ channels: ["a", "b"] })`)
    await page.evaluate(`push.enable({ channels: ["b", "c"] })`)
    await stage.startService()
    await page.evaluate("dispatchEvent(new Event('online'))")
    await stage.becomes(page, "on")
    expect(await page.evaluate("push.channels()")).toEqual(["a", "b", "c"])
  })

  it("joins the channels of two clicks at once", async () => {
    const page = await stage.load()
    await page.evaluate(`Promise.all(["a", "b"].map((each) => push.enable({ channels: [each] })))`)
    await stage.expect(page, "on")
    expect(await page.evaluate("push.channels()")).toEqual(["a", "b"])
  })

  it("joins the chosen channels when their user returns, also after another user", async () => {
    await stage.service.kill()
    const page = await stage.load()
    await page.evaluate(`push.enable({ channels: ["${stage.user}"] })`)
    await page.evaluate("push.signOut()")
    await stage.startService()
    await stage.reload(page, { user: "second" })
    await page.evaluate("push.enable()")
    expect(await page.evaluate("push.channels()")).toEqual([])
    await page.evaluate("push.disable()")
    await stage.reload(page)
    await stage.expect(page, "on")
    expect(await page.evaluate("push.channels()")).toEqual([stage.user])
  })

  it("joins no channel that was chosen before disable()", async () => {
    await stage.service.kill()
    const page = await stage.load()
    await page.evaluate(`push.enable({ channels: ["${stage.user}"] })`)
    await page.evaluate("push.disable()")
    await stage.startService()
    await stage.reload(page)
    await page.evaluate("push.enable()")
    await stage.expect(page, "on")
    expect(await page.evaluate("push.channels()")).toEqual([])
  })

  it("joins no channel that the user left before the join succeeded", async () => {
    const page = await stage.load()
    await page.evaluate(`{
      window.real = fetch
      window.fetch = async (url, options) =>
        options.method === "PUT" && url.includes("/channels/")
          ? new Response("{}", { status: 503, headers: { "retry-after": "600" } })
          : real(url, options)
    }`)
    await page.evaluate(`push.enable({ channels: ["a", "b"] })`)
    await stage.expect(page, "on", "offline")
    await page.evaluate("push.leave('a')")
    await page.evaluate("window.fetch = real; dispatchEvent(new Event('online'))")
    await stage.becomes(page, "on")
    expect(await page.evaluate("push.channels()")).toEqual(["b"])
  })

  it("leaves a channel that is chosen while nothing is stored yet", async () => {
    await stage.service.kill()
    const page = await stage.page()
    delete stage.files["/late.js"]
    await stage.connect(page, { worker: "/late.js" })
    await page.evaluate(`push.enable({ channels: ["a", "b"] })`)
    await stage.startService()
    await page.evaluate("push.leave('a')")
    stage.files["/late.js"] = stage.files["/worker.js"]!
    await page.evaluate("dispatchEvent(new Event('online'))")
    await stage.becomes(page, "on")
    expect(await page.evaluate("push.channels()")).toEqual(["b"])
  })
})
