// src/browser/client.js in a real Firefox: subscriptions that another service made, by a key that
// this one has as a former key, stored for made-up users.
import type { Page } from "puppeteer-core"
import { beforeAll, beforeEach, describe, expect, it } from "vitest"
import webpush from "web-push"
import { call } from "#test/client.ts"
import { firefoxPath } from "../browser.ts"
import { Stage } from "./stage.ts"

describe.skipIf(firefoxPath === undefined)("client.js and imported subscriptions", () => {
  const stage = new Stage()
  const former = webpush.generateVAPIDKeys()
  const older = webpush.generateVAPIDKeys()
  let page: Page
  let imported: string
  const restart = async (env = {}) => {
    await stage.service.kill()
    await stage.startService(env)
  }
  const restartWithKeys = () =>
    restart({
      BELLCAST_VAPID_FORMER_KEYS: [former, older]
        .map(({ privateKey, publicKey }) => `${publicKey}:${privateKey}`)
        .join()
    })
  beforeAll(restartWithKeys)

  beforeEach(() => {
    imported = `imported-${stage.user}`
  })

  /** Subscribes by the old service's worker, of this scope, and stores it for the made-up user. */
  const subscribe = async (scope: string, key = former.publicKey) => {
    stage.files["/old/worker.js"] = stage.files["/worker.js"]!
    page = await stage.page()
    const data = await page.evaluate(`device.subscribeBy("${scope}", "${key}")`)
    const body = { data: { ...(data as object), vapid_public_key: key } }
    return (await call(stage.service.url, "POST", "/subscriptions", imported, body)).status
  }
  const expectMoved = async () => {
    await stage.expect(page, "on")
    expect(await stage.stored(imported)).toEqual([])
    expect(await stage.stored()).toEqual([await stage.endpoint(page)])
    expect((await stage.list())[0]).toMatchObject({
      vapid_public_key: expect.not.stringMatching(former.publicKey)
    })
    expect(await page.evaluate("device.endpoints()")).toEqual(await stage.stored())
    await page.evaluate(`push.join("${stage.user}")`)
    expect(await stage.publish(page, "By the new key")).toEqual(["By the new key"])
  }

  it.each(["/", "/old/"])("moves one of a worker at %s to the user who presses", async (scope) => {
    expect(await subscribe(scope)).toBe(201)
    await stage.connect(page)
    await stage.expect(page, "off")
    expect(await stage.stored(imported)).toHaveLength(1)
    await page.evaluate("push.enable()")
    await expectMoved()
  })

  it.each(["/", "/old/"])(
    "moves one of a worker at %s at the first load with adopt",
    async (scope) => {
      expect(await subscribe(scope)).toBe(201)
      await stage.connect(page, { adopt: true })
      await expectMoved()
      const [{ id }] = await stage.list()
      await stage.reload(page, { adopt: true })
      await stage.expect(page, "on")
      expect((await stage.list()).map((each) => each.id)).toEqual([id])
    }
  )

  /** A device whose old subscription is imported after its first full check. */
  const importLater = async () => {
    await restart()
    expect(await subscribe("/old/")).toBe(400)
    await stage.connect(page)
    await page.evaluate("push.enable()")
    await stage.expect(page, "on")
    const old = await page.evaluate(`device.endpoint("/old/")`)
    expect(await page.evaluate("device.endpoints()")).toHaveLength(2)
    await restartWithKeys()
    expect(await subscribe("/old/")).toBe(201)
    expect(await stage.stored(imported)).toEqual([old])
    await stage.connect(page)
    await stage.expect(page, "on")
  }
  const expectEnded = async () => {
    await stage.expect(page, "off")
    expect(await page.evaluate("device.endpoints()")).toEqual([])
    expect(await stage.stored(imported)).toEqual([])
    expect(await stage.stored()).toEqual([])
  }

  it("moves one that was imported after the device was checked, with adopt", async () => {
    await importLater()
    await stage.age(page)
    await stage.reload(page, { adopt: true })
    await expectMoved()
  })

  it("moves one that was imported later to the user who presses again", async () => {
    await importLater()
    await page.evaluate("push.enable()")
    await expectMoved()
  })

  it("ends one that was imported later for a user who disables, with adopt", async () => {
    await importLater()
    await stage.reload(page, { adopt: true })
    await page.evaluate("push.disable()")
    await expectEnded()
  })

  it("ends one that was imported later, with adopt, where the user had disabled", async () => {
    await importLater()
    await page.evaluate("push.disable()")
    await stage.expect(page, "off")
    expect(await stage.stored(imported)).toHaveLength(1)
    await stage.reload(page, { adopt: true })
    await expectEnded()
  })

  it.each(["/", "/old/"])("ends one of a worker at %s for a user who disables", async (scope) => {
    await subscribe(scope)
    await stage.connect(page)
    await page.evaluate("push.disable()")
    await stage.expect(page, "off")
    expect(await page.evaluate("device.endpoints()")).toEqual([])
    expect(await stage.stored(imported)).toEqual([])
    expect(await stage.stored()).toEqual([])
    expect((await stage.record(page)).on).toEqual({ [stage.user]: false })
  })

  it("ends all of a user who disables, also by different keys", async () => {
    expect(await subscribe("/old/")).toBe(201)
    expect(await subscribe("/", older.publicKey)).toBe(201)
    await stage.connect(page)
    expect(await page.evaluate("device.endpoints()")).toHaveLength(2)
    await page.evaluate("push.disable()")
    await stage.expect(page, "off")
    expect(await page.evaluate("device.endpoints()")).toEqual([])
    expect(await stage.stored(imported)).toEqual([])
    expect(await stage.stored()).toEqual([])
    await page.evaluate("push.enable()")
    await stage.expect(page, "on")
    expect(await page.evaluate("device.endpoints()")).toEqual(await stage.stored())
  })

  it.each([
    ["subscribed", "push-service", "PushManager.prototype.subscribe = () => Promise.reject()"],
    [
      "stored",
      "offline",
      `const { fetch } = window
      window.fetch = (url, options) =>
        options.body?.includes("replaces") ? Promise.reject() : fetch(url, options)`
    ]
  ])("ends one at signOut() after no new one could be %s", async (_, code, breaks) => {
    expect(await subscribe("/old/")).toBe(201)
    await page.evaluate(`{ ${breaks} }`)
    await stage.connect(page, { adopt: true })
    await stage.expect(page, "off", code)
    expect(await stage.stored(imported)).toEqual([])
    expect(await stage.stored()).toEqual([await page.evaluate(`device.endpoint("/old/")`)])
    await page.evaluate("push.signOut()")
    await stage.expect(page, "off")
    expect(await page.evaluate("device.endpoints()")).toEqual([])
  })

  it("leaves one of a service that was not imported to it, at disable", async () => {
    await subscribe("/", webpush.generateVAPIDKeys().publicKey)
    await stage.connect(page)
    await page.evaluate("push.disable()")
    await stage.expect(page, "off")
    expect(await stage.endpoint(page)).not.toBeNull()
  })

  it("moves none with adopt while nobody is signed in", async () => {
    await subscribe("/")
    await stage.connect(page, { adopt: true, user: null })
    await stage.expect(page, "off")
    expect(await stage.stored(imported)).toEqual([await stage.endpoint(page)])
  })

  it("leaves one of a service that was not imported to it, with adopt", async () => {
    expect(await subscribe("/old/", webpush.generateVAPIDKeys().publicKey)).toBe(400)
    await stage.connect(page, { adopt: true })
    await stage.expect(page, "off")
    expect(await stage.record(page)).toBeUndefined()
    await page.evaluate("push.enable()")
    await stage.expect(page, "on")
    expect(await page.evaluate(`device.endpoint("/old/")`)).not.toBeNull()
  })

  it.each(["/", "/old/"])(
    "gives the service the old one of %s, then one instead",
    async (scope) => {
      await subscribe(scope)
      await stage.connect(page)
      const old = ((await page.evaluate("device.endpoints()")) as ReadonlyArray<string>)[0]
      const asked = await page.evaluate(`(async () => {
      const asked = []
      const { fetch } = window
      window.fetch = async (url, options) => {
        if (options.method === "POST") {
          const { data, replaces } = JSON.parse(options.body)
          asked.push([data.endpoint, replaces !== undefined])
        }
        return fetch(url, options)
      }
      await push.enable()
      return asked
    })()`)
      expect((asked as ReadonlyArray<unknown>).slice(0, 2)).toEqual([
        [old, false],
        [await stage.endpoint(page), true]
      ])
    }
  )
})
