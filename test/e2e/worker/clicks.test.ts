// Clicks on notifications beside pages of the site in which somebody types: no click takes a typed
// text away, and the page that a click shows is the one that it names. In a real Firefox by real
// clicks. In Chromium the event is made by hand, so focusing and opening are recorded there, but
// the pages, the questions to them and `navigate` are real.
import type { Page } from "puppeteer-core"
import { afterEach, assert, beforeAll, describe, it } from "vitest"
import { publish, until } from "#test/client.ts"
import { chromiumPath, firefoxPath } from "../browser.ts"
import { clickNotification } from "../firefox-windows.ts"
import { dispatch, Stage, textOf, worker } from "./chromium-stage.ts"
import { setStage } from "./firefox-stage.ts"

const app = `<!doctype html><title>App</title><textarea></textarea>
  <script type="module" src="/client.js"></script>`
const files = {
  "/client.js": textOf("../../../.built/client.js"),
  "/app": app,
  "/news": app,
  "/later": app,
  "/plain": "<!doctype html><title>Without the client</title><textarea></textarea>"
}

/** What a browser does for these tests. */
interface Ways {
  readonly page: () => Page
  /** Shows a notification, and clicks it. */
  readonly click: (path: string, data?: string) => Promise<void>
  /** Waits until a click has shown a page: the path of a new one; "" for one that was there. */
  readonly shown: () => Promise<string>
}

const typed = "a half-written comment"

const testClicks = (ways: Ways) => {
  /** Loads a page, moves on to `path` as an app of a single page does, and types there. */
  const typeAt = async (begin: string, path: string) => {
    const page = ways.page()
    await page.goto(new URL(begin, page.url()).href)
    await page.waitForFunction("document.readyState === 'complete'")
    await page.evaluate(`history.pushState(null, "", "${path}")`)
    await page.type("textarea", typed)
    await page.evaluate("window.isSame = true")
  }

  const expectKept = async (path: string) => {
    const [pathname, text, isSame] = (await ways
      .page()
      .evaluate(
        `[location.pathname, document.querySelector("textarea").value, window.isSame]`
      )) as ReadonlyArray<unknown>
    assert.deepEqual([pathname, text, isSame], [path, typed, true])
  }

  it("focuses the page that shows the address by pushState, and does not load it", async () => {
    await typeAt("/app", "/news")
    await ways.click("/news")
    assert.equal(await ways.shown(), "")
    await expectKept("/news")
  })

  it("opens another page where the one that began there shows something else", async () => {
    await typeAt("/news", "/comment")
    await ways.click("/news")
    assert.equal(await ways.shown(), "/news")
    await expectKept("/comment")
  })

  it("opens another page beside one that shows something else", async () => {
    await typeAt("/app", "/comment")
    await ways.click("/later")
    assert.equal(await ways.shown(), "/later")
    await expectKept("/comment")
  })

  it("opens another page where one does not say what it shows", async () => {
    await typeAt("/plain", "/plain")
    await ways.click("/plain")
    assert.equal(await ways.shown(), "/plain")
    await expectKept("/plain")
  })

  it("leads the open page there if the site wants that, and then the text is lost", async () => {
    await typeAt("/app", "/comment")
    await ways.click("/news", "reuse")
    assert.equal(await ways.shown(), "")
    const page = ways.page()
    await until(
      async () => new URL(page.url()).pathname,
      (path) => path === "/news"
    )
    assert.equal(await page.$eval("textarea", (each) => each.value), "")
  })
}

/** A site whose pushes say whether a click may lead an open page. */
const reusing = `self.bellcast = {
  onclick: ({ data }) => { self.bellcast.reuse = data === "reuse" }
}`

describe.skipIf(firefoxPath === undefined)("clicks in Firefox", { timeout: 60_000 }, () => {
  const stage = setStage(`${reusing}\nimportScripts("/bellcast.js")`)
  Object.assign(stage.files, files)
  let page: Page
  let clicks = 0
  beforeAll(async () => {
    await stage.device(`enable("${stage.service.url}", "alice", "news")`)
    page = stage.page
    await page.reload()
  })

  const pages = () => page.browser().pages()
  afterEach(async () => {
    for (const each of await pages()) if (each !== page) await each.close()
  })

  testClicks({
    page: () => page,
    click: async (path, data) => {
      // In front of the page stands another one, so its focus can be seen.
      const front = await page.browser().newPage()
      await front.bringToFront()
      const title = `To ${path} (${++clicks})`
      await publish(stage.service.url, "news", { title, url: path, data })
      await clickNotification(page.browser(), title)
    },
    shown: async () => {
      const look = async () => {
        const visible = await page.evaluate("document.visibilityState")
        const [opened] = (await pages())
          .filter((each) => each !== page)
          .map((each) => each.url())
          .filter((url) => url.startsWith(stage.site.url))
        return opened === undefined ? { visible } : { visible, path: new URL(opened).pathname }
      }
      const found = await until(
        () => look().catch(() => ({ visible: "hidden", path: undefined })),
        ({ path, visible }) => path !== undefined || visible === "visible"
      )
      return found.path ?? ""
    }
  })
})

describe.skipIf(chromiumPath === undefined)("clicks in Chromium", { timeout: 60_000 }, () => {
  const recorded = `self.focused = []
    self.opened = []
    WindowClient.prototype.focus = async function () { focused.push(this.id); return this }
    clients.openWindow = async (url) => { opened.push(url) }`
  const site = {
    ...files,
    "/worker.js": `${recorded}\n${reusing}\nimportScripts("/bellcast/worker.js")`,
    "/hostile.js": `self.seen = []
      self.opened = []
      clients.matchAll = async () => []
      clients.openWindow = async (url) => { opened.push(url) }
      self.bellcast = {
        onpush: (content) => { seen.push(Object.getOwnPropertyNames(content)) }
      }
      importScripts("/bellcast/worker.js")`
  }
  const stage = new Stage({ ...site, "/bellcast/worker.js": worker })

  testClicks({
    page: () => stage.page,
    click: async (path, data) => {
      await stage.evaluateIn("/worker.js", "focused.length = opened.length = 0")
      await stage.page.evaluate(`navigator.serviceWorker.getRegistration("/").then((it) =>
        it.showNotification("A", { data: { bellcast: {
          target: "${stage.site.url}${path}", targets: [], data: ${JSON.stringify(data ?? null)}
        } } }))`)
      const clicked = `new NotificationEvent("notificationclick", {
        notification: (await registration.getNotifications())[0]
      })`
      await stage.evaluateIn("/worker.js", dispatch(clicked))
    },
    shown: async () => {
      const [focused, opened] = (await stage.evaluateIn("/worker.js", "[focused, opened]")) as [
        ReadonlyArray<string>,
        ReadonlyArray<string>
      ]
      assert.equal(focused.length + opened.length, 1)
      return opened[0] === undefined ? "" : new URL(opened[0]).pathname
    }
  })

  it.each([
    ["a map as an object", { target: "/a", targets: { yes: "/yes" } }, "yes", "/yes"],
    [
      "a map as an object, beside the actions",
      { target: "/a", targets: { yes: "/yes" } },
      "",
      "/a"
    ],
    ["no map", { target: "/a" }, "yes", "/a"],
    ["null for a map", { target: "/a", targets: null }, "", "/a"],
    ["a map of another form", { target: "/a", targets: [1, null, "yes"] }, "yes", "/a"],
    ["addresses of no page", { target: "/a", targets: { yes: "javascript:a" } }, "yes", ""],
    ["another form altogether", "/a", "", ""]
  ])("closes a notification of a former worker that stored %s", async (_, stored, action, path) => {
    await stage.page.goto(`${stage.site.url}/plain`)
    await stage.evaluateIn("/worker.js", "focused.length = opened.length = 0")
    const { left, opened } = (await stage.evaluateIn(
      "/worker.js",
      `(async () => {
        const data = { bellcast: ${JSON.stringify(stored)} }
        await registration.showNotification("A", { data })
        const [notification] = await registration.getNotifications()
        await ${dispatch(`new NotificationEvent("notificationclick", {
          notification, action: "${action}"
        })`)}
        return { left: (await registration.getNotifications()).length, opened }
      })()`
    )) as { readonly left: number; readonly opened: ReadonlyArray<string> }
    assert.equal(left, 0)
    const paths = opened.map((url) => new URL(url, stage.site.url).pathname)
    assert.deepEqual(paths, path === "" ? [] : [path])
  })

  it("takes actions and members by their own names only", async () => {
    await stage.register("/hostile.js", "/hostile/")
    const names = ["__proto__", "constructor", "toString"]
    const actions = names.slice(0, 2).map((action) => ({ action, title: "A", url: `/${action}` }))
    const push = `{ "title": "A", "url": "/a", "__proto__": 1, "constructor": 2,
      "actions": ${JSON.stringify(actions)} }`
    const { data } = await stage.push(push, "/hostile/")
    const members = ["title", "url", "__proto__", "constructor", "actions", "app_badge"]
    assert.deepEqual(await stage.evaluateIn("/hostile.js", "seen"), [members])
    for (const action of names) {
      await stage.page.evaluate(`navigator.serviceWorker.getRegistration("/hostile/").then((it) =>
        it.showNotification("A", { data: ${JSON.stringify(data)} }))`)
      const clicked = `new NotificationEvent("notificationclick", {
        notification: (await registration.getNotifications())[0], action: "${action}"
      })`
      await stage.evaluateIn("/hostile.js", dispatch(clicked))
    }
    assert.deepEqual(await stage.evaluateIn("/hostile.js", "opened"), [
      ...["/__proto__", "/constructor"].map((path) => stage.site.url + path),
      `${stage.site.url}/a`
    ])
  })
})
