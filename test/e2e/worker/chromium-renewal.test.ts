// src/browser/worker.js renews a subscription in a real Chromium, after an event made by hand.
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { call, until } from "#test/client.ts"
import { startNats } from "#test/nats.ts"
import { type Service, startService, vapid } from "#test/service.ts"
import { chromiumPath } from "../browser.ts"
import { dispatch, Stage, textOf, worker } from "./chromium-stage.ts"

const files = {
  "/": `<!doctype html><title>Site</title><script type="module" src="/device.js"></script>`,
  "/device.js": textOf("device.js"),
  "/records.js": textOf("../records.js"),
  "/worker.js": worker
}

describe.skipIf(chromiumPath === undefined)("worker.js renews in Chromium", () => {
  const opened = new AsyncDisposableStack()
  const stage = new Stage(files)
  let service: Service
  beforeAll(async () => {
    const nats = opened.use(await startNats())
    const env = { BELLCAST_CORS_ORIGINS: stage.site.url }
    service = opened.use(await startService({ natsUrl: nats.url, env }))
    await stage.page.evaluate(`device.enable("${service.url}", "alice", "news")`)
  })
  afterAll(() => opened.disposeAsync())

  const stored = async () => {
    const { body } = await call(service.url, "GET", "/subscriptions", "alice")
    return (body.data as ReadonlyArray<{ endpoint: string }>).map((each) => each.endpoint)
  }
  const subscribe = `registration.pushManager.subscribe({
    userVisibleOnly: true, applicationServerKey: "${vapid.publicKey}" })`

  const changes = (init: string) => {
    const event = `new PushSubscriptionChangeEvent("pushsubscriptionchange", ${init})`
    return stage.evaluateIn("/worker.js", dispatch(event))
  }

  it("nothing when the subscription is the one that is stored", async () => {
    const before = await stage.page.evaluate("device.record()")
    await changes("{}")
    assert.deepEqual(await stage.page.evaluate("device.record()"), before)
  })

  it.each([
    ["names neither subscription", "{}"],
    ["brings the new subscription", `{ newSubscription: await ${subscribe} }`]
  ])("when the event %s", async (_, init) => {
    const before = await stored()
    await stage.page.evaluate("device.unsubscribe()")
    await changes(init)
    const endpoint = await stage.page.evaluate("device.endpoint()")
    assert.notInclude(before, endpoint)
    assert.deepEqual(await stored(), [endpoint])
  })

  it("without the record of a page that wrote another one meanwhile", async () => {
    await stage.page.evaluate("device.unsubscribe()")
    await stage.evaluateIn(
      "/worker.js",
      `self.real = self.fetch
      self.fetch = async (...given) => {
        const response = await real(...given)
        const { promise, resolve } = Promise.withResolvers()
        indexedDB.open("bellcast", 1).onsuccess = ({ target }) => {
          const transaction = target.result.transaction("state", "readwrite")
          transaction.objectStore("state").clear()
          transaction.oncomplete = resolve
          target.result.close()
        }
        await promise
        return response
      }`
    )
    const before = await stage.page.evaluate("device.record()")
    await changes("{}")
    assert.isUndefined(await stage.page.evaluate("device.record()"))
    await stage.evaluateIn("/worker.js", "self.fetch = real")
    await stage.page.evaluate(`device.change(${JSON.stringify(before)})`)
  })

  // The last one: from then on this Chromium cannot subscribe.
  it("nothing after 10 s without the push service, and frees the lock", async () => {
    const before = await stage.page.evaluate("device.record()")
    await stage.page.evaluate("device.unsubscribe()")
    stage.vendor.fallSilent()
    const begin = performance.now()
    const changed = changes("{}").catch(() => {})
    await until(
      () => stage.page.evaluate("navigator.locks.query().then(({ held }) => held.length)"),
      (held) => held === 1
    )
    await stage.page.evaluate("device.lock()")
    const took = performance.now() - begin
    assert.isAtLeast(took, 9_500)
    // A busy machine takes longer; the lock of a worker that waits for ever is never free.
    assert.isAtMost(took, 25_000)
    await stage.page.evaluate("device.unlock()")
    await changed
    assert.deepEqual(await stage.page.evaluate("device.record()"), before)
  })
})
