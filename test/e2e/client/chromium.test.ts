// src/browser/client.js in a real Chromium: the README's page, Trusted Types, a Content Security
// Policy, COEP, its own error when its push service refuses or is silent, and in which order the
// client does things.
import { readFileSync } from "node:fs"
import type { Browser, Page } from "puppeteer-core"
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "vitest"
import { type ChromiumVendor, startChromiumVendor } from "#test/chromium-vendor.ts"
import { basic, call, until } from "#test/client.ts"
import { startNats } from "#test/nats.ts"
import { type Service, startService } from "#test/service.ts"
import { chromiumPath, setNotifications, startChromium } from "../browser.ts"
import { deliverPush } from "../chromium-push.ts"
import { type Site, type SiteFiles, startPages } from "../site.ts"

if (chromiumPath === undefined)
  process.stdout.write("no Chromium here: its tests are skipped (apt-get install chromium)\n")

const textOf = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8")

const readme = textOf("../../../src/browser/README.md").split("\n## client.js\n")[1]!
const [, block = ""] = /^```js\n(.*?)^```$/ms.exec(readme)!

const files: SiteFiles = {
  "/readme": `<!doctype html><title>Site</title><button id="button">Notify me</button>
    <p id="message"></p><script type="module" src="/readme.js"></script>`,
  "/push-token": basic("42"),
  "/client.js": textOf("../../../.built/client.js"),
  "/worker.js": textOf("../../../.built/worker.js"),
  "/page.js": `import { connect } from "/client.js"
    window.violations = []
    addEventListener("securitypolicyviolation", (event) =>
      violations.push(event.effectiveDirective))
    const policy = trustedTypes.createPolicy("site", { createScriptURL: (url) => url })
    window.load = async (url, user) => {
      const worker = policy.createScriptURL("/worker.js")
      const token = () => "Basic " + btoa(user + ":secret")
      window.push = await connect({ url, user, worker, token })
      return [push.state, push.error?.code ?? null]
    }`
}

/** Until the address has a fragment, the test evaluates nothing: that would count as a click. */
const unclicked = (url: string) => `import { connect } from "/client.js"
  let asked = 0
  Notification.requestPermission = async () => { asked += 1; return "default" }
  const push = await connect({ url: "${url}", user: "nora", worker: "/worker.js" })
  await push.enable()
  location.hash = [push.state, push.error?.code, asked]`

describe.skipIf(chromiumPath === undefined)("client.js in Chromium", () => {
  const opened = new AsyncDisposableStack()
  let vendor: ChromiumVendor
  let site: Site
  let service: Service
  let browser: Browser
  let page: Page
  beforeAll(async () => {
    const nats = opened.use(await startNats())
    vendor = opened.use(await startChromiumVendor())
    site = opened.use(await startPages(files))
    const env = { BELLCAST_CORS_ORIGINS: site.url }
    service = opened.use(await startService({ natsUrl: nats.url, env }))
    files["/bellcast/client.js"] = files["/client.js"]!
    const afar = { "cross-origin-embedder-policy": "require-corp" }
    files["/afar/"] = {
      body: `<!doctype html><title>Site</title><script type="module" src="/afar/page.js"></script>`,
      headers: { ...afar, "cross-origin-opener-policy": "same-origin" }
    }
    files["/afar/page.js"] = String(files["/page.js"])
      .replace("/client.js", `${service.url}/client.js`)
      .replace("/worker.js", "/afar/worker.js")
    files["/afar/worker.js"] = {
      body: `importScripts("${service.url}/worker.js")`,
      headers: afar
    }
    files["/unclicked"] = `<!doctype html><script type="module" src="/unclicked.js"></script>`
    files["/unclicked.js"] = unclicked(service.url)
    files["/readme.js"] = block.replace("https://push.example.org/v1", service.url)
    const { origin } = new URL(service.url)
    files["/"] = {
      body: `<!doctype html><title>Site</title><script type="module" src="/page.js"></script>`,
      headers: {
        "content-security-policy":
          `default-src 'none'; script-src 'self'; worker-src 'self'; connect-src ${origin}; ` +
          "img-src 'self'; require-trusted-types-for 'script'; trusted-types site",
        "cross-origin-embedder-policy": "require-corp",
        "cross-origin-opener-policy": "same-origin"
      }
    }
    // No language tag, as in some environments of Linux.
    const flags = [...vendor.flags, "--accept-lang=en-US@posix"]
    browser = await startChromium(chromiumPath!, { ...vendor, flags })
    opened.defer(() => browser.close())
    page = await browser.newPage()
    await page.goto(site.url)
  })
  // The browser and its push service stay for the next test, and for a second try of this one.
  beforeEach(({ onTestFailed }) => {
    vendor.refuse(false)
    onTestFailed(() => void process.stdout.write(service.output()))
  })
  afterAll(() => opened.disposeAsync())

  const load = async (user: string) => {
    await page.reload()
    return page.evaluate(`load("${service.url}", "${user}")`)
  }
  const permit = (state: "granted" | "denied" | "prompt") =>
    setNotifications(browser, site.url, state)
  const shown = () => page.evaluate("[push.state, push.error?.code ?? null]")
  const endpoint = `navigator.serviceWorker.getRegistration("/")
    .then((it) => it.pushManager.getSubscription()).then((it) => it?.endpoint ?? null)`

  it("says off before anybody pressed, and denied where the browser denies", async () => {
    assert.deepEqual(await load("anna"), ["off", null])
    await permit("denied")
    assert.deepEqual(await load("anna"), ["denied", null])
  })

  it("says push-service when Chromium's does not subscribe, and enables when it does", async () => {
    await permit("granted")
    await load("berta")
    await page.evaluate("push.disable()")
    vendor.refuse(true)
    await page.evaluate("push.enable()")
    assert.deepEqual(await shown(), ["off", "push-service"])
    assert.equal(await page.evaluate("push.error.cause.name"), "AbortError")
    vendor.refuse(false)
    await page.evaluate("push.enable()")
    assert.deepEqual(await shown(), ["on", null])
  })

  it("enables by the button of the README, with its channel", async () => {
    await permit("granted")
    await using tab = await browser.newPage()
    await tab.goto(`${site.url}/readme`)
    const message = () => tab.evaluate("message.textContent")
    await until(message, (text) => text === "off")
    await tab.click("#button")
    await until(message, (text) => text === "on")
    assert.isTrue(await tab.evaluate("button.hidden"))
    const { body } = await call(service.url, "GET", "/registrations", "42")
    assert.deepEqual(body.data, [{ id: "news" }])
  })

  it("violates no policy of a page with Trusted Types and COEP", async () => {
    await permit("granted")
    await load("clara")
    await page.evaluate(`push.enable({ channels: ["news"] })`)
    assert.deepEqual(await shown(), ["on", null])
    assert.deepEqual(await page.evaluate("push.channels()"), ["news"])
    assert.isTrue(await page.evaluate("crossOriginIsolated"))
    assert.deepEqual(await page.evaluate("violations"), [])
    const { body } = await call(service.url, "GET", "/subscriptions", "clara")
    assert.lengthOf(body.data, 1)
    assert.equal(body.data[0].endpoint, await page.evaluate(endpoint))
    assert.equal(await page.evaluate("navigator.language"), "en-US@posix")
    assert.equal(body.data[0].locale, "en-US")
  })

  it("takes both files from the service, in a page and a worker with COEP", async () => {
    await permit("granted")
    await using tab = await browser.newPage()
    await tab.goto(`${site.url}/afar/`)
    assert.isTrue(await tab.evaluate("crossOriginIsolated"))
    await tab.evaluate(`load("${service.url}", "carl")`)
    await tab.evaluate("push.enable()")
    assert.deepEqual(await tab.evaluate("[push.state, push.error?.code ?? null]"), ["on", null])
    const scope = `${site.url}/afar/`
    assert.equal(await deliverPush(tab, scope, '{"title":"From afar"}'), "Success")
    const titles = await tab.evaluate(`navigator.serviceWorker.getRegistration("${scope}")
      .then((it) => it.getNotifications())
      .then((all) => all.map(({ title }) => title))`)
    assert.deepEqual(titles, ["From afar"])
  })

  it("asks for permission before it waits for anything", async () => {
    await permit("granted")
    await load("doris")
    const isAsked = await page.evaluate(`(() => {
      let isAsked = false
      const { requestPermission } = Notification
      Notification.requestPermission = async () => { isAsked = true; return "default" }
      push.enable()
      Notification.requestPermission = requestPermission
      return isAsked
    })()`)
    assert.isTrue(isAsked)
  })

  it("does not ask without a click", async () => {
    await permit("prompt")
    await using tab = await browser.newPage()
    await tab.goto(`${site.url}/unclicked`)
    await until(
      async () => new URL(tab.url()).hash,
      (hash) => hash === "#off,no-click,0"
    )
  })

  it.each([
    ["disable", { user: "emma", on: { emma: false } }],
    ["signOut", { user: null, on: { emma: true } }]
  ])("stores the wish before it unsubscribes, in %s()", async (method, wish) => {
    await permit("granted")
    await load("emma")
    await page.evaluate("push.enable()")
    assert.deepEqual(await shown(), ["on", null])
    await page.evaluate(`{
      const { unsubscribe } = PushSubscription.prototype
      const read = () => new Promise((resolve) => {
        indexedDB.open("bellcast", 1).onsuccess = ({ target }) => {
          const states = target.result.transaction("state").objectStore("state")
          states.get(location.origin + "/").onsuccess = (event) => resolve(event.target.result)
        }
      })
      PushSubscription.prototype.unsubscribe = async function () {
        window.stored = await read()
        return unsubscribe.call(this)
      }
    }`)
    await page.evaluate(`push.${method}()`)
    const { on, renewal, user } = (await page.evaluate("stored")) as Record<string, object>
    assert.deepInclude(on, wish.on)
    assert.deepEqual({ user, renewal }, { user: wish.user, renewal: null })
    assert.isNull(await page.evaluate(endpoint))
  })

  it("says push-service after 10 s when Chromium's does not respond", async () => {
    await permit("granted")
    await load("frida")
    vendor.fallSilent()
    const begin = performance.now()
    await page.evaluate("push.enable()")
    assert.closeTo(performance.now() - begin, 14_000, 5_000)
    assert.deepEqual(await shown(), ["off", "push-service"])
  })
})
