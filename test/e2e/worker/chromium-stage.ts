// The stage of tests of src/browser/worker.js in Chromium: a site with workers of a scope each, and
// pushes that are delivered to them.
import { readFileSync } from "node:fs"
import type { Page } from "puppeteer-core"
import { afterAll, assert, beforeAll } from "vitest"
import { type ChromiumVendor, startChromiumVendor } from "#test/chromium-vendor.ts"
import { chromiumPath, setNotifications, startChromium } from "../browser.ts"
import { deliverPush } from "../chromium-push.ts"
import { type Site, type SiteFiles, startPages } from "../site.ts"

if (chromiumPath === undefined)
  process.stdout.write("no Chromium here: its tests are skipped (apt-get install chromium)\n")

export const textOf = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8")
export const worker = textOf("../../../.built/worker.js")

/** A worker that has something of its own to do before. */
export const after = (before: string) => `${before}\nimportScripts("/bellcast/worker.js")`

export interface Shown {
  readonly title: string
  readonly body: string
  readonly icon: string
  readonly tag: string
  readonly actions: ReadonlyArray<{ readonly action: string; readonly title: string }>
  readonly data: {
    readonly bellcast: {
      readonly target?: string
      readonly targets: ReadonlyArray<readonly [string, string | null]>
      readonly data?: unknown
    }
  }
}

/**
 * Dispatches an event that the browser does not send here, and waits for its listeners. Only a
 * browser's own event may be waited for: the test waits instead.
 */
export const dispatch = (event: string) => `(async () => {
  const event = ${event}
  const waits = []
  Object.defineProperty(event, "waitUntil", { value: (promise) => waits.push(promise) })
  dispatchEvent(event)
  for (const each of waits) await each
})()`

export class Stage {
  readonly #opened = new AsyncDisposableStack()
  site!: Site
  page!: Page
  vendor!: ChromiumVendor
  readonly #files: SiteFiles

  /** Starts before all tests of a file, with `/worker.js` of `files` registered for "/". */
  constructor(files: SiteFiles) {
    const html = "<!doctype html><title>Site</title>"
    const isolated = { "cross-origin-embedder-policy": "require-corp" }
    this.#files = {
      "/": { body: html, headers: isolated },
      "/bellcast/worker.js": worker,
      ...files
    }
    beforeAll(() => this.#start())
    afterAll(() => this.#opened.disposeAsync())
  }

  async #start() {
    this.site = this.#opened.use(await startPages(this.#files))
    this.vendor = this.#opened.use(await startChromiumVendor())
    const browser = this.#opened.use(await startChromium(chromiumPath!, this.vendor))
    this.page = await browser.newPage()
    await setNotifications(browser, this.site.url, "granted")
    await this.page.goto(this.site.url)
    await this.register("/worker.js", "/")
  }

  register(script: string, scope: string, type = "classic") {
    return this.page.evaluate(`navigator.serviceWorker
      .register("${script}", { scope: "${scope}", type: "${type}" })
      .then(({ installing }) => new Promise((resolve) => {
        const look = () => installing.state === "activated" && resolve()
        installing.addEventListener("statechange", look)
        look()
      }))`)
  }

  /** All notifications of a scope; they are closed. */
  async taken(scope = "/"): Promise<ReadonlyArray<Shown>> {
    return (await this.page.evaluate(`navigator.serviceWorker.getRegistration("${scope}")
      .then((registration) => registration.getNotifications())
      .then((all) => all.map((each) => {
        each.close()
        const { title, body, icon, tag, data } = each
        const actions = each.actions.map(({ action, title }) => ({ action, title }))
        return { title, body, icon, tag, actions, data }
      }))`)) as ReadonlyArray<Shown>
  }

  /** The one notification that a push shows. */
  async push(data: string, scope = "/"): Promise<Shown> {
    assert.equal(await deliverPush(this.page, `${this.site.url}${scope}`, data), "Success")
    const [shown, ...more] = await this.taken(scope)
    assert.deepEqual(more, [], data)
    assert.isDefined(shown, data)
    return shown!
  }

  async evaluateIn(script: string, expression: string) {
    const url = `${this.site.url}${script}`
    const target = await this.page.browser().waitForTarget((each) => each.url() === url)
    return (await target.worker())!.evaluate(expression)
  }
}
