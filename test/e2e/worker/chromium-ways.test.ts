// src/browser/worker.js with the settings of a site, under its policies, and with the ways of other
// browsers, made by hand in a real Chromium.
import { assert, describe, it } from "vitest"
import { chromiumPath } from "../browser.ts"
import { after, dispatch, type Shown, Stage, textOf, worker } from "./chromium-stage.ts"

/** No script but the site's, and none made of text. */
const policy = "default-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
const [, readme] = textOf("../../../src/browser/README.md").split("\n## worker.js\n")
const [, forImages] = /^\| `(img-src [^`]+)` \|/m.exec(readme!) ?? []
const badges = `self.badges = []
  navigator.setAppBadge = async (number) => badges.push(number)`

const files = {
  "/worker.js": { body: worker, headers: { "content-security-policy": policy } },
  "/named.js": after(`self.bellcast = { name: "My site" }`),
  "/readme.js": `${badges}\n${/^```js\n(.*?)^```$/ms.exec(readme!)![1]}`,
  "/unread": '{ "unread": 2 }',
  "/plain.js": { body: worker, headers: { "content-security-policy": policy } },
  "/images.js": {
    body: worker,
    headers: { "content-security-policy": `${policy}; ${forImages}` }
  },
  "/module.js": {
    body: `import "/bellcast/worker.js"; self.bellcast = { name: "Module" }`,
    headers: { "content-security-policy": `${policy}; script-src 'self'` }
  },
  "/home.js": after(`self.bellcast = { home: "app/?from=push" }`),
  "/hanging.js": after(`self.waited = []
    self.later = self.setTimeout
    self.setTimeout = (task, millis) => {
      waited.push(millis)
      return later(task, millis)
    }
    clients.matchAll = async () => []
    clients.openWindow = async (url) => { self.opened = url }
    self.bellcast = { onpush: () => new Promise(() => {}), onclick: () => new Promise(() => {}) }`),
  "/refused.js": after(`self.bellcast = { onpush: () => ({ title: "Hook", renotify: true }) }`),
  "/safari.js": after(`${badges}
    const { showNotification } = registration
    registration.showNotification = (title, options) => {
      self.passed = options.navigate ?? null
      return showNotification.call(registration, title, options)
    }`),
  "/mac.js": after(`Object.defineProperty(navigator, "userAgent", { value: "Macintosh Chrome/1" })`)
}

describe.skipIf(chromiumPath === undefined)("worker.js in Chromium", { timeout: 60_000 }, () => {
  const stage = new Stage(files)

  it("shows the configured name for a push without a title", async () => {
    await stage.register("/named.js", "/named/")
    assert.equal((await stage.push("{}", "/named/")).title, "My site")
  })

  it("does in the README's worker what the README says", async () => {
    await stage.register("/readme.js", "/readme/")
    assert.equal((await stage.push("{}", "/readme/")).title, "My site")
    assert.equal((await stage.push('{"title":"A","body":"B"}', "/readme/")).body, "B")
    assert.deepEqual(await stage.evaluateIn("/readme.js", "badges"), [2, 2])
    const record = `self.done = []
      self.fetch = async (path) => done.push(path)
      clients.openWindow = async (url) => done.push(url)`
    await stage.evaluateIn("/readme.js", record)
    await stage.page.evaluate(`navigator.serviceWorker.getRegistration("/readme/").then((it) =>
      it.showNotification("C", {
        data: { bellcast: { target: "/c", targets: [], data: { topic: "news" } } }
      }))`)
    const clicked = `new NotificationEvent("notificationclick", {
      notification: (await registration.getNotifications())[0], action: "mute"
    })`
    await stage.evaluateIn("/readme.js", dispatch(clicked))
    assert.deepEqual(await stage.evaluateIn("/readme.js", "done"), ["/mute/news"])
  })

  it("shows what the README publishes, declarative and plain", async () => {
    const blocks = [...readme!.matchAll(/^```json\n(.*?)^```$/gms)].map(([, text]) => text!)
    const shown = []
    for (const block of blocks) {
      const { body, data, title } = await stage.push(block)
      shown.push([title, body, data.bellcast])
    }
    const { url: own } = stage.site
    const data = { topic: "news" }
    const targets: Shown["data"]["bellcast"]["targets"] = [["mute", "https://example.org/muted"]]
    assert.deepEqual(shown, [
      ["Hello", "from Bellcast", { target: "https://example.org/news/1", targets, data }],
      ["Hello", "from Bellcast", { target: `${own}/news/1`, targets: [], data }]
    ])
  })

  it("shows the original, with its options, if the browser refuses those of the hook", async () => {
    await stage.register("/refused.js", "/refused/")
    const { title, tag } = await stage.push('{"title":"A","tag":"t"}', "/refused/")
    assert.deepEqual([title, tag], ["A", "t"])
  })

  it("is imported by a module whose policy demands Trusted Types", async () => {
    await stage.register("/module.js", "/module/", "module")
    assert.equal((await stage.push("{}", "/module/")).title, "Module")
  })

  it("needs nothing of the policy of its own response to show a push", async () => {
    const listen = `self.violations = []
      addEventListener("securitypolicyviolation", (event) => violations.push(event.blockedURI))`
    await stage.evaluateIn("/worker.js", listen)
    await stage.push('{"title":"A","actions":[{"action":"a","title":"A","navigate":"/a"}]}')
    assert.deepEqual(await stage.evaluateIn("/worker.js", "violations"), [])
    await stage.evaluateIn("/worker.js", `fetch("/").catch(() => {})`)
    assert.deepEqual(await stage.evaluateIn("/worker.js", "violations"), [`${stage.site.url}/`])
  })

  it("needs for the images of a push what the README says", async () => {
    const refused = async (script: string, scope: string) => {
      await stage.register(script, scope)
      const listen = `self.violations = []
        addEventListener("securitypolicyviolation", (event) => violations.push(event.blockedURI))`
      await stage.evaluateIn(script, listen)
      await stage.push('{"title":"A","icon":"/icon.png"}', scope)
      return stage.evaluateIn(script, "violations")
    }
    assert.deepEqual(await refused("/plain.js", "/plain/"), [`${stage.site.url}/icon.png`])
    assert.deepEqual(await refused("/images.js", "/images/"), [])
  })

  it("leaves clicks on notifications alone that the site showed itself", async () => {
    const clicked = `new NotificationEvent("notificationclick", {
      notification: (await registration.getNotifications())[0]
    })`
    await stage.page.evaluate(`navigator.serviceWorker.getRegistration("/").then((it) =>
      it.showNotification("Own", { data: { id: 1 } }))`)
    await stage.evaluateIn("/worker.js", dispatch(clicked))
    assert.deepEqual(
      (await stage.taken()).map(({ title }) => title),
      ["Own"]
    )
  })

  it.each([
    ["/bellcast/worker.js", "/bellcast/", "/"],
    ["/home.js", "/home/", "/home/app/?from=push"]
  ])("opens by %s of %s, for a notification without an address, %s", async (...given) => {
    const [script, scope, opened] = given
    await stage.register(script, scope)
    await stage.page.evaluate(`navigator.serviceWorker.getRegistration("${scope}").then((it) =>
      it.showNotification("A", { data: { bellcast: { targets: [] } } }))`)
    const clicked = `new NotificationEvent("notificationclick", {
      notification: (await registration.getNotifications())[0]
    })`
    const record = `self.opened = []
      clients.matchAll = async () => []
      clients.openWindow = async (url) => opened.push(url)`
    await stage.evaluateIn(script, record)
    await stage.evaluateIn(script, dispatch(clicked))
    assert.deepEqual(await stage.evaluateIn(script, "opened"), [stage.site.url + opened])
  })

  it("waits 500 ms for a hook of clicks: Firefox opens nothing a second after one", async () => {
    await stage.register("/hanging.js", "/hanging/")
    await stage.page.evaluate(`navigator.serviceWorker.getRegistration("/hanging/").then((it) =>
      it.showNotification("A", { data: { bellcast: { target: "/a", targets: [] } } }))`)
    const clicked = `new NotificationEvent("notificationclick", {
      notification: (await registration.getNotifications())[0]
    })`
    await stage.evaluateIn("/hanging.js", dispatch(clicked))
    assert.deepEqual(await stage.evaluateIn("/hanging.js", "[opened, waited]"), [
      `${stage.site.url}/a`,
      [500]
    ])
  })

  it("waits 3 s for a hook of pushes, then shows the original", async () => {
    await stage.evaluateIn("/hanging.js", "waited.length = 0")
    assert.equal((await stage.push('{"title":"Original"}', "/hanging/")).title, "Original")
    assert.deepEqual(await stage.evaluateIn("/hanging.js", "waited"), [3000])
  })

  it("stays for a second in Chromium on macOS, which drops notifications else", async () => {
    await stage.register("/mac.js", "/mac/")
    const begin = performance.now()
    await stage.push('{"title":"A"}', "/mac/")
    assert.isAtLeast(performance.now() - begin, 1_000)
  })

  it("tells Safari what a click opens, unless the hook for clicks is there to decide", async () => {
    await stage.register("/safari.js", "/safari/")
    await stage.push('{"title":"A","url":"/a"}', "/safari/")
    assert.equal(await stage.evaluateIn("/safari.js", "passed"), `${stage.site.url}/a`)
    await stage.evaluateIn("/safari.js", "self.bellcast = { onclick() {} }")
    await stage.push('{"title":"A","url":"/a"}', "/safari/")
    assert.isNull(await stage.evaluateIn("/safari.js", "passed"))
  })

  it("shows what Safari proposes for a mutable declarative push", async () => {
    const proposed = `Object.assign(new PushEvent("push"), {
      notification: (await registration.getNotifications())[0], appBadge: 4
    })`
    await stage.page.evaluate(`navigator.serviceWorker.getRegistration("/safari/").then((it) =>
      it.showNotification("Proposed", { body: "Text", tag: "same", data: { id: 1 } }))`)
    await stage.evaluateIn("/safari.js", "badges.length = 0")
    await stage.evaluateIn("/safari.js", dispatch(proposed))
    const [{ title, body, data }] = (await stage.taken("/safari/")) as [Shown]
    assert.deepEqual([title, body, data.bellcast.data], ["Proposed", "Text", { id: 1 }])
    assert.deepEqual(await stage.evaluateIn("/safari.js", "badges"), [4])
  })

  it("shows a push while nothing can be reached", async () => {
    await stage.site[Symbol.asyncDispose]()
    assert.equal((await stage.push('{"title":"Alone"}')).title, "Alone")
  })
})
