// The demo of `make run` in a real Firefox: from the address that the start prints to a push.
import { describe, expect, it } from "vitest"
import { elapsed } from "#test/quiet.ts"
import { firefoxPath } from "../browser.ts"
import { answerPrompt } from "../firefox-windows.ts"
import { Stage } from "./stage.ts"

describe.skipIf(firefoxPath === undefined)("the demo", () => {
  const stage = new Stage("prompt")
  const { becomes, press, shown, text } = stage

  it("shows a push after a press and the browser's question", async () => {
    await becomes("#state", /^off$/)
    await press("Notify me")
    await answerPrompt(stage.page, "Allow")
    await becomes("#state", /^on$/)
    await press("Send a push")
    await becomes("#sent", /delivered: its push service answered 201/)
    expect(await shown()).toEqual([{ title: "Hello", body: "from you" }])
    expect(stage.autopush.refusals).toEqual([])
  })

  it("joins a channel, publishes on it, tells what became of it, and leaves", async () => {
    await stage.page.click("#join button")
    await becomes("#channels", /news.*sports/s)
    await stage.page.$eval("#publish [name=channel]", (input) => {
      ;(input as unknown as { value: string }).value = "sports"
    })
    await press("Publish")
    await becomes("#published", /^Broadcast \d+: 1 delivered\.$/)
    expect(await shown()).toEqual([{ title: "Hello", body: "from the demo" }])
    await stage.page.click("[aria-label='Leave sports']")
    await becomes("#channels", /^newsLeave$/)
  })

  it("lists requests, pushes and outcomes, also after a reload, without keys", async () => {
    const listed = [/request.*POST \/v1\/subscriptions 201/, /push.*the worker shows “Hello”/]
    for (const each of listed) await becomes("#underneath", each)
    await stage.page.reload()
    for (const each of [...listed, /outcome.*Broadcast \d+: 1 delivered/, /client.*state: on/])
      await becomes("#underneath", each)
    const { endpoint, keys } = (await stage.page.evaluate(`navigator.serviceWorker
      .getRegistration().then(({ pushManager }) => pushManager.getSubscription())
      .then((found) => found.toJSON())`)) as { endpoint: string; keys: Record<string, string> }
    const listedText = await text("#underneath")
    expect(listedText).toContain(keys["auth"]!.slice(0, 8))
    for (const secret of [endpoint, keys["auth"]!, keys["p256dh"]!])
      expect(listedText).not.toContain(secret)
  })

  it("shows the user's devices, and sends to one", async () => {
    await becomes("#devices", /^This browser/)
    await stage.page.click("[aria-label='Send a push to this browser']")
    await becomes("#tested", /delivered/)
    expect(await shown()).toHaveLength(1)
    await press("Stop notifying me")
    await becomes("#state", /^off$/)
    await becomes("#devices", /^None/)
  })

  it("sends a push as soon as it is on, before the list of devices is read", async () => {
    await stage.page.evaluate(`new MutationObserver((_, observer) => {
      if (state.className !== "on") return
      observer.disconnect()
      send.click()
    }).observe(state, { attributes: true })`)
    await press("Notify me")
    await becomes("#sent", /delivered/)
    expect(await shown()).toHaveLength(1)
  })

  it("removes a browser at the service, which has it again at a later load", async () => {
    await becomes("#devices", /^This browser/)
    await stage.page.click("[aria-label='Remove this browser']")
    await becomes("#tested", /The service forgot it/)
    await becomes("#devices", /^None/)
    // The client checks at each load, but for one within 10 s after a check.
    await elapsed(10_000)
    await stage.page.reload()
    await becomes("#devices", /^This browser/)
    await becomes("#state", /^on$/)
  })

  it("signs a user out, and shows nothing of theirs to nobody", async () => {
    await becomes("#state", /^on$/)
    await press("Log out")
    await becomes("#user", /^Nobody is signed in/)
    expect(await stage.page.$$eval("section[hidden]", ({ length }) => length)).toBe(3)
    await press("Log in as alice")
    await becomes("#state", /^on$/)
  })
})
