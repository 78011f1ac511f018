// The buttons of "Try it" that break things, in a real Firefox: what the page says then is so.
import { describe, expect, it } from "vitest"
import { firefoxPath, setNotifications } from "../browser.ts"
import { Stage } from "./stage.ts"

describe.skipIf(firefoxPath === undefined)("try it", () => {
  const stage = new Stage({ browser: "firefox" })
  const { becomes, press, shown } = stage

  /** The buttons are behind a fold. */
  const unfold = () =>
    stage.page
      .waitForSelector("#breaks-fold")
      .then(() => stage.page.evaluate('document.getElementById("breaks-fold").open = true'))

  const turnOn = async () => {
    await unfold()
    await becomes("#state", /^(on|off)$/)
    if ((await stage.text("#state")) === "off") await press("Notify me")
    await becomes("#state", /^on$/)
    await becomes("#devices", /This browser/)
  }

  /** After a load of the page, pushes come again without a press. */
  const comesBack = async () => {
    await Promise.all([stage.page.waitForNavigation(), press("Load the page again")])
    await becomes("#state", /^on$/)
    await becomes("#devices", /This browser/)
    await press("Send a push")
    await becomes("#sent", /delivered: its push service answered 201/)
    expect(await shown()).toHaveLength(1)
  }

  it("unsubscribes behind the server's back: 410, and the client subscribes anew", async () => {
    await turnOn()
    await press("Unsubscribe behind")
    await becomes("#break-unsubscribe output", /^Unsubscribed/)
    await press("Send a push")
    await becomes("#sent", /answered 410\. The service removed it\. The client has subscribed/)
    await becomes("#state", /^on$/)
    await comesBack()
  })

  it("subscribes with another VAPID key, and a load mends it", async () => {
    await turnOn()
    await press("Subscribe with another")
    await becomes("#break-key output", /^Subscribed with another key/)
    await comesBack()
  })

  it("removes the worker, and a load mends it", async () => {
    await turnOn()
    await press("Remove the worker")
    await becomes("#break-worker output", /^The worker is gone/)
    await comesBack()
  })

  it("lets another user log in without a logout, who has no pushes", async () => {
    await turnOn()
    await press("Let bob log in")
    await becomes(".who b", /bob/)
    await becomes("#state", /^off$/)
    await unfold()
    await press("Let alice log in")
    await becomes(".who b", /alice/)
    await becomes("#state", /^on$/)
  })

  it("tells what becomes of the state when the permission is taken", async () => {
    const { origin } = new URL(stage.service.url)
    // A second try begins where the first one ended.
    await setNotifications(stage.browser, origin, "granted")
    await turnOn()
    await setNotifications(stage.browser, origin, "denied")
    await becomes("#state", /^denied$/)
    await setNotifications(stage.browser, origin, "prompt")
    await becomes("#state", /^lost$/)
    await setNotifications(stage.browser, origin, "granted")
    await becomes("#state", /^on$/)
  })

  it("sends to a made-up browser that is gone, which the service removes", async () => {
    await turnOn()
    await press("Send to a browser that is gone")
    await becomes(
      "#break-gone output",
      /gone: its push service answered 410\. The service removed it\.$/
    )
    expect(await stage.text("#devices")).not.toContain("made-up")
  })

  it("sends where there are too many pushes: later, and once", async () => {
    await turnOn()
    await press("Send where there are too many")
    await becomes(
      "#break-throttled output",
      /answered 429\. (Later once more|Broadcast \d+: 1 ret)/
    )
    await becomes(
      "#break-throttled output",
      /retrying: its push service answered 429\. Broadcast \d+: 1 delivered\.$/
    )
  })
})
