// What src/browser/worker.js shows, in a real Chromium: each push is delivered to the real worker.
import { readFileSync } from "node:fs"
import type { Browser, Page } from "puppeteer-core"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { chromiumPath, setNotifications, startChromium } from "./browser.ts"
import { deliverPush } from "./chromium-push.ts"
import { type Site, startPages } from "./site.ts"

const worker = readFileSync(new URL("../../src/browser/worker.js", import.meta.url), "utf8")

/** A worker that has something of its own to do before. */
const after = (before: string) => `${before}\nimportScripts("/worker.js")`

const policy = "default-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

const files = {
  "/": {
    body: "<!doctype html><title>Site</title>",
    headers: { "cross-origin-embedder-policy": "require-corp" }
  },
  "/worker.js": { body: worker, headers: { "content-security-policy": policy } },
  "/named.js": after(`self.bellcast = { name: "My site" }`),
  "/badges.js": after(`self.badges = []
    navigator.setAppBadge = async (number) => badges.push(number)`),
  "/safari.js": after(`const { showNotification } = registration
    registration.showNotification = (title, options) => {
      self.passed = options.navigate ?? null
      return showNotification.call(registration, title, options)
    }`),
  "/mac.js": after(`Object.defineProperty(navigator, "userAgent", { value: "Macintosh Chrome/1" })`)
}

interface Shown {
  readonly title: string
  readonly body: string
  readonly icon: string
  readonly tag: string
  readonly actions: ReadonlyArray<{ readonly action: string; readonly title: string }>
  readonly data: {
    readonly bellcast: {
      readonly target?: string
      readonly targets: Readonly<Record<string, string>>
      readonly data?: unknown
    }
  }
}

if (chromiumPath === undefined)
  process.stdout.write("no Chromium here: its tests are skipped (apt-get install chromium)\n")

describe.skipIf(chromiumPath === undefined)("worker.js in Chromium", { timeout: 60_000 }, () => {
  let browser: Browser
  let site: Site
  let page: Page

  beforeAll(async () => {
    site = await startPages(files)
    browser = await startChromium(chromiumPath!)
    await setNotifications(browser, site.url, "granted")
    page = await browser.newPage()
    await page.goto(site.url)
    await register("/worker.js", "/")
  })
  afterAll(async () => {
    await browser?.close()
    await site?.[Symbol.asyncDispose]()
  })

  const register = (script: string, scope: string) =>
    page.evaluate(`navigator.serviceWorker.register("${script}", { scope: "${scope}" })
      .then(({ installing }) => new Promise((resolve) => {
        const look = () => installing.state === "activated" && resolve()
        installing.addEventListener("statechange", look)
        look()
      }))`)

  /** All notifications of a scope; they are closed. */
  const taken = (scope = "/") =>
    page.evaluate(`navigator.serviceWorker.getRegistration("${scope}")
      .then((registration) => registration.getNotifications())
      .then((all) => all.map((each) => {
        each.close()
        const { title, body, icon, tag, data } = each
        const actions = each.actions.map(({ action, title }) => ({ action, title }))
        return { title, body, icon, tag, actions, data }
      }))`) as Promise<ReadonlyArray<Shown>>

  const push = async (data: string, scope = "/"): Promise<Shown> => {
    assert.equal(await deliverPush(page, `${site.url}${scope}`, data), "Success")
    const [shown, ...more] = await taken(scope)
    assert.deepEqual(more, [], data)
    assert.isDefined(shown, data)
    return shown!
  }

  it("shows a declarative push with its options, and keeps what its clicks open", async () => {
    const shown = await push(
      JSON.stringify({
        web_push: 8030,
        notification: {
          title: "Grüße",
          body: "für alle",
          tag: "t",
          icon: "/icon.png",
          navigate: "https://example.org/news/1",
          data: { id: 1 },
          actions: [
            { action: "read", title: "Read", navigate: "https://example.org/read" },
            { action: "mute", title: "Mute" }
          ]
        }
      })
    )
    assert.deepEqual(shown, {
      title: "Grüße",
      body: "für alle",
      tag: "t",
      icon: `${site.url}/icon.png`,
      actions: [
        { action: "read", title: "Read" },
        { action: "mute", title: "Mute" }
      ],
      data: {
        bellcast: {
          target: "https://example.org/news/1",
          targets: { read: "https://example.org/read" },
          data: { id: 1 }
        }
      }
    })
  })

  it("shows a plain push", async () => {
    const { title, body, data } = await push(
      JSON.stringify({ title: "News", body: "Text", url: "/news?page=2#a" })
    )
    assert.deepEqual([title, body], ["News", "Text"])
    assert.equal(data.bellcast.target, `${site.url}/news?page=2#a`)
  })

  it("keeps only addresses of the web", async () => {
    const { data } = await push(
      JSON.stringify({
        title: "News",
        url: "javascript:alert(1)",
        actions: [{ action: "a", title: "A", url: "data:text/html,x" }]
      })
    )
    assert.deepEqual(data.bellcast, { targets: {} })
  })

  it("shows the host of the site for a push without a title", async () => {
    for (const data of [
      ...["", "no JSON", "5", "null", "[]", "[1]", '"text"', "{}"],
      ...['{"title":5}', '{"title":""}', '{"title":{}}', '{"notification":{}}'],
      ...['{"web_push":8030,"notification":null}', '{"notification":"text"}']
    ])
      assert.equal((await push(data)).title, new URL(site.url).host, data)
  })

  it("shows the configured name for a push without a title", async () => {
    await register("/named.js", "/named/")
    assert.equal((await push("{}", "/named/")).title, "My site")
  })

  it("shows title and text if the browser refuses the options", async () => {
    for (const options of [
      ...[{ renotify: true }, { silent: true, vibrate: [1] }, { dir: "up" }, { timestamp: "x" }],
      ...[{ actions: [{}] }, { actions: 5 }, { actions: [null] }, { vibrate: {} }, { icon: {} }]
    ]) {
      const { title, body, data } = await push(
        JSON.stringify({ title: "News", body: "Text", url: "/1", ...options })
      )
      const told = JSON.stringify(options)
      assert.deepEqual([title, body], ["News", "Text"], told)
      assert.equal(data.bellcast.target, `${site.url}/1`, told)
    }
  })

  it("takes null for an absent option", async () => {
    const { body } = await push('{"title":"News","body":null,"actions":null,"timestamp":null}')
    assert.equal(body, "")
  })

  const evaluateIn = async (script: string, expression: string) => {
    const target = await browser.waitForTarget((each) => each.url() === `${site.url}${script}`)
    return (await target.worker())!.evaluate(expression)
  }

  it("sets the badge that stands at the top level or, as in Safari 18.4, inside", async () => {
    await register("/badges.js", "/badges/")
    for (const data of [
      { app_badge: 3, title: "A" },
      { app_badge: 0, notification: { title: "A" } },
      { notification: { title: "A", app_badge: "7" } },
      { app_badge: 1, notification: { title: "A", app_badge: 2 } },
      { title: "A" }
    ])
      await push(JSON.stringify(data), "/badges/")
    assert.deepEqual(await evaluateIn("/badges.js", "badges"), [3, 0, 7, 1])
  })

  it("shows a push although the badge is refused", async () => {
    assert.equal((await push('{"title":"A","app_badge":"x"}')).title, "A")
  })

  it("stays for a second in Chromium on macOS, which drops notifications else", async () => {
    await register("/mac.js", "/mac/")
    const begin = performance.now()
    await push('{"title":"A"}', "/mac/")
    assert.isAtLeast(performance.now() - begin, 1_000)
  })

  /** Scripts cannot make the browser wait: the test does, for the promise of the listener. */
  const dispatch = (event: string) => `(async () => {
    const event = ${event}
    let done
    Object.defineProperty(event, "waitUntil", { value: (promise) => { done = promise } })
    dispatchEvent(event)
    await done
  })()`

  it("tells Safari what a click opens, unless the hook for clicks is there to decide", async () => {
    await register("/safari.js", "/safari/")
    await push('{"title":"A","url":"/a"}', "/safari/")
    assert.equal(await evaluateIn("/safari.js", "passed"), `${site.url}/a`)
    await evaluateIn("/safari.js", "self.bellcast = { onclick() {} }")
    await push('{"title":"A","url":"/a"}', "/safari/")
    assert.isNull(await evaluateIn("/safari.js", "passed"))
  })

  it("shows what Safari proposes for a mutable declarative push", async () => {
    const proposed = `Object.assign(new PushEvent("push"), {
      notification: (await registration.getNotifications())[0], appBadge: 4
    })`
    await page.evaluate(`navigator.serviceWorker.getRegistration("/badges/").then((it) =>
      it.showNotification("Proposed", { body: "Text", tag: "same", data: { id: 1 } }))`)
    await evaluateIn("/badges.js", "badges.length = 0")
    await evaluateIn("/badges.js", dispatch(proposed))
    const [{ title, body, data }] = (await taken("/badges/")) as [Shown]
    assert.deepEqual([title, body, data.bellcast.data], ["Proposed", "Text", { id: 1 }])
    assert.deepEqual(await evaluateIn("/badges.js", "badges"), [4])
  })

  it("leaves clicks on notifications alone that the site showed itself", async () => {
    const clicked = `new NotificationEvent("notificationclick", {
      notification: (await registration.getNotifications())[0]
    })`
    await page.evaluate(`navigator.serviceWorker.getRegistration("/").then((it) =>
      it.showNotification("Own", { data: { id: 1 } }))`)
    await evaluateIn("/worker.js", dispatch(clicked))
    assert.deepEqual(
      (await taken()).map(({ title }) => title),
      ["Own"]
    )
  })

  it("needs nothing of the policy of its own response to show a push", async () => {
    const listen = `self.violations = []
      addEventListener("securitypolicyviolation", (event) => violations.push(event.blockedURI))`
    await evaluateIn("/worker.js", listen)
    await push('{"title":"A","actions":[{"action":"a","title":"A","navigate":"/a"}]}')
    assert.deepEqual(await evaluateIn("/worker.js", "violations"), [])
    await evaluateIn("/worker.js", `fetch("/").catch(() => {})`)
    assert.deepEqual(await evaluateIn("/worker.js", "violations"), [`${site.url}/`])
  })

  it("shows a push while nothing can be reached", async () => {
    await site[Symbol.asyncDispose]()
    assert.equal((await push('{"title":"Alone"}')).title, "Alone")
  })
})
