// "Try it" of `make run` in a real Firefox: from the address that the start prints to a push.
import { describe, expect, it } from "vitest"
import { UserAgent } from "#test/user-agent.ts"
import { firefoxPath } from "../browser.ts"
import { answerPrompt } from "../firefox-windows.ts"
import { Stage, tryUrl } from "./stage.ts"

describe.skipIf(firefoxPath === undefined)("try it", () => {
  const stage = new Stage({ browser: "firefox", permission: "prompt" })
  const { becomes, press, shown, text } = stage

  const chooseChannel = (name: string) =>
    stage.page.evaluate(`{
      const field = document.querySelector("#publish [name=channel]")
      field.value = "${name}"
      field.dispatchEvent(new Event("input"))
    }`)

  it("shows a push after a press and the browser's question", async () => {
    expect(stage.page.url()).toBe(tryUrl(stage.service))
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
    await chooseChannel("sports")
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
    await stage.page.click("[aria-label='Send a push: This browser']")
    await becomes("#tested", /delivered/)
    expect(await shown()).toHaveLength(1)
    await press("Stop notifying me")
    await becomes("#state", /^off$/)
    await becomes("#devices", /^None/)
  })

  it("sends a push as soon as it is on, before the list of devices is read", async () => {
    await stage.page.evaluate(`new MutationObserver((_, observer) => {
      if (!state.classList.contains("on")) return
      observer.disconnect()
      send.click()
    }).observe(state, { attributes: true })`)
    await press("Notify me")
    await becomes("#sent", /delivered/)
    expect(await shown()).toHaveLength(1)
  })

  it("does not say that the service forgot this browser while it cannot be reached", async () => {
    await becomes("#devices", /^This browser/)
    await stage.page.evaluate(`{
      window.real = fetch
      window.fetch = (url, options) =>
        /POST|DELETE/.test(options?.method) ? real("http://127.0.0.1:1/") : real(url, options)
    }`)
    await stage.page.click("[aria-label='Remove: This browser']")
    await becomes("#tested", /^Failed. The notification service does not respond/)
    await stage.page.evaluate("window.fetch = real")
    await press("Notify me")
    await becomes("#state", /^on$/)
    await becomes("#devices", /^This browser/)
  })

  it("removes this browser by its own client, so the page does not go on to say on", async () => {
    await becomes("#devices", /^This browser/)
    await stage.page.click("[aria-label='Remove: This browser']")
    await becomes("#tested", /The service forgot it/)
    await becomes("#devices", /^None/)
    await becomes("#state", /^off$/)
    await press("Notify me")
    await becomes("#devices", /^This browser/)
    await becomes("#state", /^on$/)
  })

  it("says that a press is being worked on, and then no more", async () => {
    await stage.page.evaluate(`{
      window.real = fetch
      const held = new Promise((resolve) => { window.release = resolve })
      window.fetch = async (...given) => { await held; return real(...given) }
    }`)
    await press("Stop notifying me")
    await becomes("#state-text", /^One moment/)
    await stage.page.evaluate("window.fetch = real; release()")
    await becomes("#state", /^off$/)
    await becomes("#state-text", /^No notifications come to this browser/)
    await press("Notify me")
    await becomes("#state", /^on$/)
  })

  it("says what became of most pushes of a broadcast while one is tried again", async () => {
    const auth = `Basic ${Buffer.from("alice:demo").toString("base64")}`
    const until = Date.now() + 600_000
    const { subscription } = new UserAgent("", {})
    const { keys } = subscription
    const endpoint = `${stage.service.url}/demo/push/${until}/one`
    const headers = { authorization: auth, "content-type": "application/json" }
    const body = JSON.stringify({ data: { endpoint, keys } })
    const stored = await fetch(`${stage.service.url}/subscriptions`, {
      method: "POST",
      headers,
      body
    })
    expect(stored.status).toBe(201)
    await chooseChannel("news")
    await press("Publish")
    await becomes("#published", /^Broadcast \d+: 1 delivered, 1 retrying\.$/)
    const { data } = (await stored.json()) as { data: { id: string } }
    await fetch(`${stage.service.url}/subscriptions/${data.id}`, { method: "DELETE", headers })
  })

  it("asks who one is after a logout, and knows it after a login", async () => {
    await press("Log out")
    await stage.logIn("alice")
    await becomes("#state", /^on$/)
  })
})
