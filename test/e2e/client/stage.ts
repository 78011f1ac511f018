// The stage of tests of src/browser/client.js in a real Firefox: a service that can be stopped and
// started anew, a push service that speaks Firefox's protocol, and a site with both files.
import { readFileSync } from "node:fs"
import type { Browser, Page } from "puppeteer-core"
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest"
import { type Autopush, startAutopush } from "#test/autopush.ts"
import { basic, call, publish, until } from "#test/client.ts"
import { startNats, type TestNats } from "#test/nats.ts"
import { type Service, startService } from "#test/service.ts"
import { firefoxPath, setNotifications, startFirefox } from "../browser.ts"
import { type Site, type SiteFiles, startPages } from "../site.ts"

if (firefoxPath === undefined)
  process.stdout.write("no Firefox here: its tests are skipped (apt-get install firefox-esr)\n")

const textOf = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8")

const html = `<!doctype html><html lang="en"><title>Site</title><link rel="icon" href="data:,">
<button id="enable">Notify me</button><script type="module" src="/page.js"></script></html>`

export interface Record {
  readonly user: string | null
  readonly on: { readonly [user: string]: boolean }
  readonly endpoint: string | null
  readonly key: string | null
  readonly renewal: string | null
  readonly former: { readonly [user: string]: string }
}

export interface Stored {
  readonly id: string
  readonly endpoint: string
  readonly keys: object
  readonly locale?: string
  readonly label?: string
}

export interface Shown {
  readonly state: string
  readonly error: { readonly code: string; readonly retryable: boolean } | null
}

/** Options of `connect` that a test gives, beside `url` and `worker`. */
export interface Given {
  readonly user: string | null
  /** Answers of `token`, the last one for ever. Default: one that the service takes. */
  readonly tokens?: ReadonlyArray<string>
  readonly worker?: string
  readonly adopt?: boolean
}

/** Starts the stage before all tests of a file; each test has pages and a user of its own. */
export class Stage {
  nats!: TestNats
  autopush!: Autopush
  service!: Service
  site!: Site
  browser!: Browser
  readonly files: SiteFiles = {
    "/": html,
    "/page.js": textOf("page.js"),
    "/records.js": textOf("../records.js"),
    "/client.js": textOf("../../../.built/client.js"),
    "/worker.js": textOf("../../../.built/worker.js")
  }
  user = ""
  readonly #pages: Array<Page> = []

  constructor(permission: "granted" | "prompt" = "granted") {
    const opened = new AsyncDisposableStack()
    let users = 0
    beforeAll(async () => {
      this.nats = opened.use(await startNats())
      this.autopush = opened.use(await startAutopush())
      this.site = opened.use(await startPages(this.files))
      await this.startService()
      opened.defer(() => this.service[Symbol.asyncDispose]())
      this.browser = opened.use(await startFirefox(firefoxPath!, this.autopush.socketUrl))
    })
    afterAll(() => opened.disposeAsync())
    beforeEach(async () => {
      this.user = `user${++users}`
      await setNotifications(this.browser, this.site.url, permission)
    })
    afterEach(async () => {
      await this.#pages.at(-1)?.evaluate("device.clear()")
      for (const page of this.#pages.splice(0)) await page.close()
    })
  }

  /** `env`: more settings, such as other keys. The address stays. */
  async startService(env: { readonly [name: string]: string } = {}) {
    this.service = await startService({
      natsUrl: this.nats.url,
      port: this.service?.port ?? 0,
      env: {
        BELLCAST_CORS_ORIGINS: this.site.url,
        BELLCAST_CHANNEL_REGISTER_PRINCIPALS: "closed=",
        BELLCAST_REGISTRATIONS_PER_USER_MAX: "3",
        ...env
      }
    })
  }

  async page(query = ""): Promise<Page> {
    const page = await this.browser.newPage()
    this.#pages.push(page)
    await page.goto(`${this.site.url}/${query}`)
    return page
  }

  /** Calls `connect` as a page does on each load. */
  async connect(page: Page, given: Partial<Given> = {}): Promise<Shown> {
    return (await page.evaluate(this.#callOf(given))) as Shown
  }

  /** Calls it once for each, one right after the other, and waits for all. */
  async connectAll(page: Page, all: ReadonlyArray<Partial<Given>>): Promise<void> {
    const calls = all.map((given) => this.#callOf(given))
    await page.evaluate(`Promise.all([${calls.join(", ")}])`)
  }

  #callOf(given: Partial<Given>): string {
    const { tokens, user = this.user, worker = "/worker.js", adopt } = given
    const answers = tokens ?? [basic(user ?? "nobody")]
    const options = { url: this.service.url, user, worker, adopt }
    return `device.connect(${JSON.stringify(options)}, ${JSON.stringify(answers)})`
  }

  /** A page that is loaded and connected. */
  async load(given: Partial<Given> = {}): Promise<Page> {
    const page = await this.page()
    await this.connect(page, given)
    return page
  }

  /** A page whose user gets pushes of the channel that is called like the user. */
  async enabled(given: Partial<Given> = {}): Promise<Page> {
    const page = await this.load(given)
    const channels = [given.user ?? this.user]
    await page.evaluate(`push.enable({ channels: ${JSON.stringify(channels)} })`)
    await this.expect(page, "on")
    return page
  }

  async reload(page: Page, given: Partial<Given> = {}): Promise<Shown> {
    await page.reload()
    return this.connect(page, given)
  }

  async shown(page: Page): Promise<Shown> {
    return (await page.evaluate("device.shown()")) as Shown
  }

  async expect(page: Page, state: string, code: string | null = null) {
    const shown = await this.shown(page)
    expect({ state: shown.state, code: shown.error?.code ?? null }).toEqual({ state, code })
  }

  async becomes(page: Page, state: string, code: string | null = null) {
    await until(
      () => this.shown(page),
      (shown) => shown.state === state && (shown.error?.code ?? null) === code
    )
  }

  record = async (page: Page) => (await page.evaluate("device.record()")) as Record
  endpoint = async (page: Page) => (await page.evaluate("device.endpoint()")) as string | null

  /** Lets the next load check everything at the service: it does so a day after another one. */
  async age(page: Page, hours = 25) {
    await page.evaluate(`device.change({ checked: Date.now() - ${hours * 3_600_000} })`)
  }

  /** Subscriptions of a user, as the service has them. */
  async list(user = this.user): Promise<[Stored, ...ReadonlyArray<Stored>]> {
    return (await call(this.service.url, "GET", "/subscriptions", user)).body.data
  }

  /** Endpoints of a user, as the service has them. */
  async stored(user = this.user): Promise<ReadonlyArray<string>> {
    return (await this.list(user)).map(({ endpoint }) => endpoint)
  }

  /** The timestamp of a user's list, which every write moves. */
  async revision(user = this.user): Promise<string | null> {
    return (await call(this.service.url, "HEAD", "/subscriptions", user)).headers.get("etag")
  }

  /** Publishes to the user's channel; titles of what is shown then. */
  async publish(page: Page, title: string, user = this.user): Promise<ReadonlyArray<string>> {
    await publish(this.service.url, user, { title })
    return until(
      async () => (await page.evaluate("device.taken()")) as ReadonlyArray<string>,
      ({ length }) => length > 0
    )
  }
}
