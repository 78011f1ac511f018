// src/browser/client.js in a real Firefox: what users asked for is done, also while the worker, the
// storage or the login fails or hangs.
import type { Page } from "puppeteer-core"
import { describe, expect, it } from "vitest"
import { until } from "#test/client.ts"
import { firefoxPath } from "../browser.ts"
import { Stage } from "./stage.ts"

describe.skipIf(firefoxPath === undefined)("client.js and wishes", () => {
  const stage = new Stage()
  const online = "dispatchEvent(new Event('online'))"

  /** Connects by a worker whose script is not there, until `back`. */
  const withoutWorker = async (page: Page, user: string | null = stage.user) => {
    delete stage.files["/late.js"]
    await stage.connect(page, { user, worker: "/late.js" })
    return async () => {
      stage.files["/late.js"] = stage.files["/worker.js"]!
      await page.evaluate(online)
    }
  }

  /** Connects with a token that never comes: a text for `evaluate`. */
  const loadWithoutToken = () => {
    const options = JSON.stringify({ url: stage.service.url, user: stage.user })
    return `import("/client.js").then(async ({ connect }) => {
      const token = () => new Promise(() => {})
      window.push = await connect({ ...${options}, worker: "/worker.js", token })
    })`
  }
  const withoutToken = (page: Page) => page.evaluate(loadWithoutToken())
  const signOut = `(async () => {
    const begin = performance.now()
    const state = await push.signOut()
    return [state, performance.now() - begin < 5_000]
  })()`

  const refuseStorage = `{
    window.open = IDBFactory.prototype.open
    IDBFactory.prototype.open = () => { throw new DOMException("refused", "SecurityError") }
  }`
  const allowStorage = "IDBFactory.prototype.open = window.open; undefined"

  it("enables when the worker can be registered at last, with the channels", async () => {
    const page = await stage.page()
    const back = await withoutWorker(page)
    await page.evaluate(`push.enable({ channels: ["${stage.user}"] })`)
    await stage.expect(page, "off", "worker")
    await back()
    await stage.becomes(page, "on")
    expect(await page.evaluate("push.channels()")).toEqual([stage.user])
  })

  it("disables when the worker can be registered at last", async () => {
    const page = await stage.enabled()
    await page.reload()
    const back = await withoutWorker(page)
    await page.evaluate("push.disable()")
    await back()
    await stage.becomes(page, "off")
    expect((await stage.record(page)).on).toEqual({ [stage.user]: false })
    expect(await stage.stored()).toEqual([])
  })

  it("unsubscribes the first user for a second one whose worker is missing", async () => {
    const page = await stage.enabled()
    await page.reload()
    const back = await withoutWorker(page, "second")
    await stage.expect(page, "off", "worker")
    expect(await stage.endpoint(page)).toBeNull()
    expect(await stage.record(page)).toMatchObject({ user: "second", renewal: null })
    await back()
    await stage.becomes(page, "off")
  })

  it("unsubscribes by the worker that the record names when another one is missing", async () => {
    stage.files["/old/worker.js"] = stage.files["/worker.js"]!
    const page = await stage.enabled({ worker: "/old/worker.js" })
    await page.reload()
    await withoutWorker(page, null)
    expect(await page.evaluate("device.endpoints()")).toEqual([])
  })

  it("subscribes a second user, who pressed before, when the worker is there", async () => {
    const page = await stage.enabled({ user: "second" })
    await stage.reload(page)
    await page.evaluate("push.enable()")
    await page.reload()
    const back = await withoutWorker(page, "second")
    expect(await stage.endpoint(page)).toBeNull()
    await back()
    await stage.becomes(page, "on")
    expect(await stage.stored("second")).toEqual([await stage.endpoint(page)])
  })

  it.each(["signOut", "disable"])("unsubscribes in %s() without the worker", async (method) => {
    const page = await stage.enabled()
    await page.reload()
    await withoutWorker(page)
    await stage.expect(page, "on", "worker")
    expect(await page.evaluate(`push.${method}()`)).toBe("off")
    expect(await stage.endpoint(page)).toBeNull()
    expect(await stage.stored()).toEqual([])
  })

  it.each(["signOut", "disable"])("unsubscribes in %s() without its storage", async (method) => {
    const page = await stage.enabled()
    await page.evaluate(refuseStorage)
    expect(await page.evaluate(`push.${method}()`)).toBe("off")
    await page.evaluate(allowStorage)
    expect(await stage.endpoint(page)).toBeNull()
  })

  it("stays subscribed without its storage while nobody asks for anything", async () => {
    const page = await stage.enabled()
    await page.evaluate(refuseStorage)
    await page.evaluate(online)
    await stage.becomes(page, "off", "browser")
    await page.evaluate(allowStorage)
    expect(await stage.endpoint(page)).not.toBeNull()
  })

  it.each([
    ["its storage", "IDBFactory.prototype.open = () => ({})"],
    ["its subscription", "PushManager.prototype.getSubscription = () => new Promise(() => {})"]
  ])("waits 11 s at most for a browser that hangs over %s, and says so", async (_, hang) => {
    const page = await stage.page()
    await page.evaluate(`${hang}; undefined`)
    const begin = performance.now()
    await stage.connect(page)
    expect(performance.now() - begin).toBeLessThan(13_000)
    expect(await page.evaluate("push.enable()")).toBe("off")
    await stage.expect(page, "off", "browser")
    await page.reload()
    await stage.connect(page)
    await page.evaluate("push.enable()")
    await stage.becomes(page, "on")
  })

  it("signs out, with an error, where the browser never answers to unsubscribe()", async () => {
    const page = await stage.enabled()
    const state = await page.evaluate(`(async () => {
      const { unsubscribe } = PushSubscription.prototype
      PushSubscription.prototype.unsubscribe = () => new Promise(() => {})
      await push.signOut()
      PushSubscription.prototype.unsubscribe = unsubscribe
      return [push.state, push.error.code]
    })()`)
    expect(state).toEqual(["off", "push-service"])
    expect(await stage.record(page)).toMatchObject({ user: null, endpoint: null })
    expect(await stage.stored()).toEqual([])
  })

  it("says what the device knows, and signs out at once, while a token hangs", async () => {
    const page = await stage.enabled()
    await stage.age(page)
    await page.reload()
    await withoutToken(page)
    expect((await stage.shown(page)).state).toBe("on")
    expect(await page.evaluate(signOut)).toEqual(["off", true])
    expect(await stage.endpoint(page)).toBeNull()
  })

  it("signs out at once while another wish waits for a token", async () => {
    const page = await stage.page()
    await withoutToken(page)
    await page.evaluate("window.enabling = push.enable().then(() => {}); undefined")
    await until(
      () => stage.endpoint(page),
      (endpoint) => endpoint !== null
    )
    expect(await page.evaluate(signOut)).toEqual(["off", true])
    await page.evaluate("enabling")
    expect(await stage.endpoint(page)).toBeNull()
    expect(await stage.record(page)).toMatchObject({ user: null, on: { [stage.user]: true } })
  })

  it("signs out at once between two steps of another wish, which waits no more", async () => {
    const page = await stage.page()
    await withoutToken(page)
    // Called while the subscription is noted: next the wish would wait for the token.
    await page.evaluate(`new Promise((resolve) => {
      const { put } = IDBObjectStore.prototype
      IDBObjectStore.prototype.put = function (record, ...rest) {
        if (record.endpoint && !window.signingOut) {
          window.signingOut = ${signOut}
          resolve()
        }
        return put.call(this, record, ...rest)
      }
      push.enable()
    })`)
    expect(await page.evaluate("signingOut")).toEqual(["off", true])
    expect(await stage.endpoint(page)).toBeNull()
    expect((await stage.record(page)).user).toBeNull()
  })

  it("signs out at once while other pages have the lock or wait for it", async () => {
    const page = await stage.enabled()
    await stage.age(page)
    const others = [await stage.page(), await stage.page()]
    for (const other of others)
      await other.evaluate(`{ window.connecting = ${loadWithoutToken()}; undefined }`)
    await until(
      () => page.evaluate("navigator.locks.query().then(({ pending }) => pending.length)"),
      (waiting) => waiting === 1
    )
    expect(await page.evaluate(signOut)).toEqual(["off", true])
    for (const other of others) {
      await other.evaluate("connecting")
      await stage.becomes(other, "off")
    }
    expect(await stage.endpoint(page)).toBeNull()
    expect((await stage.record(page)).user).toBeNull()
  })

  it("signs out in two pages at once while another one has the lock", async () => {
    const pages = [await stage.enabled(), await stage.load()] as const
    const holder = await stage.page()
    await holder.evaluate(`new Promise((hold) => {
      const isHeld = () => {
        hold()
        return new Promise((release) => { window.release = release })
      }
      navigator.locks.request("bellcast:" + location.origin + "/", isHeld)
    })`)
    // Each page signs out before it hears of the other.
    for (const page of pages)
      await page.evaluate(`{
        const { postMessage } = BroadcastChannel.prototype
        BroadcastChannel.prototype.postMessage = function (message) {
          window.post = () => postMessage.call(this, message)
        }
        window.signingOut = push.signOut()
        undefined
      }`)
    for (const page of pages)
      await page.evaluate(`new Promise((heard) => {
        new BroadcastChannel("bellcast").onmessage = heard
        post()
      })`)
    await holder.evaluate("release()")
    for (const page of pages) expect(await page.evaluate("signingOut")).toBe("off")
    expect(await stage.endpoint(pages[0])).toBeNull()
    expect((await stage.record(pages[0])).user).toBeNull()
    expect(await stage.stored()).toEqual([])
  })

  it("enables and signs out where the browser refuses channels between pages", async () => {
    const page = await stage.page()
    await page.evaluate(`window.BroadcastChannel = class {
      constructor() { throw new DOMException("refused", "SecurityError") }
    }; undefined`)
    await stage.connect(page)
    await page.evaluate("push.enable()")
    await stage.expect(page, "on")
    expect(await page.evaluate("push.signOut()")).toBe("off")
    expect(await stage.endpoint(page)).toBeNull()
  })

  it("lets the last user of a page be, whose predecessor's load failed", async () => {
    const page = await stage.page()
    const back = await withoutWorker(page, "first")
    await page.evaluate("window.first = push")
    stage.files["/late.js"] = stage.files["/worker.js"]!
    await stage.connect(page)
    await page.evaluate("push.enable()")
    await stage.expect(page, "on")
    await back()
    await page.evaluate("first.disable()")
    expect(await page.evaluate("first.error.code")).toBe("user")
    await stage.becomes(page, "on")
    expect((await stage.record(page)).user).toBe(stage.user)
  })

  it("keeps no listener of a request that was answered for longer than 10 s", async () => {
    const page = await stage.load()
    const ended = await page.evaluate(`(async () => {
      const listened = []
      const { addEventListener } = AbortSignal.prototype
      AbortSignal.prototype.addEventListener = function (type, listener, options) {
        listened.push(options.signal)
        addEventListener.call(this, type, listener, options)
      }
      const { timeout } = AbortSignal
      AbortSignal.timeout = (millis) => timeout.call(AbortSignal, millis / 10)
      await push.channels()
      await new Promise((resolve) => setTimeout(resolve, 1_500))
      return listened.map(({ aborted }) => aborted)
    })()`)
    expect(ended).toEqual([true, true, true])
  })

  it("has one channel to other pages open, however often a page connects", async () => {
    const page = await stage.page()
    await page.evaluate(`{
      window.opened = new Set()
      window.BroadcastChannel = class extends BroadcastChannel {
        constructor(name) {
          super(name)
          opened.add(this)
        }
        close() {
          super.close()
          opened.delete(this)
        }
      }
      undefined
    }`)
    for (const user of [stage.user, null, stage.user]) await stage.connect(page, { user })
    expect(await page.evaluate("opened.size")).toBe(1)
  })

  it("listens once, however often a page connects", async () => {
    const page = await stage.load()
    await stage.connect(page)
    await stage.connect(page)
    const locked = await page.evaluate(`(async () => {
      let locked = 0
      const { request } = navigator.locks
      navigator.locks.request = (...given) => {
        locked += 1
        return request.apply(navigator.locks, given)
      }
      ${online}
      await push.disable()
      return locked
    })()`)
    expect(locked).toBe(2)
  })

  it("looks at the time once, however often a page connects", async () => {
    const page = await stage.page()
    await page.evaluate(`{
      window.looks = []
      for (const [owner, name] of [[window, "setInterval"], [document, "addEventListener"]]) {
        const given = owner[name]
        owner[name] = (...all) => {
          looks.push(name)
          return given.apply(owner, all)
        }
      }
      undefined
    }`)
    for (const user of [stage.user, null, stage.user]) await stage.connect(page, { user })
    expect(await page.evaluate("looks.toSorted()")).toEqual(["addEventListener", "setInterval"])
  })
})
