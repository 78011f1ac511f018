// The stage of tests of the console: a service as `make run` starts it, a real browser with a push
// service on loopback, and the page of the console, where somebody is logged in.
import type { Browser, Page } from "puppeteer-core"
import { afterAll, beforeAll } from "vitest"
import { type Autopush, startAutopush } from "#test/autopush.ts"
import { type ChromiumVendor, startChromiumVendor } from "#test/chromium-vendor.ts"
import { until } from "#test/client.ts"
import { startDevelopment } from "#test/development.ts"
import type { Service } from "#test/service.ts"
import { collectViolations } from "../access.ts"
import {
  chromiumPath,
  firefoxPath,
  setNotifications,
  startChromium,
  startFirefox
} from "../browser.ts"

export const paths = { firefox: firefoxPath, chromium: chromiumPath } as const

for (const [name, path] of Object.entries(paths))
  if (path === undefined)
    process.stdout.write(`no ${name} here: its tests are skipped (apt-get install ${name})\n`)

export interface Shown {
  readonly title: string
  readonly body: string
}

/** The address that a start prints first: of the tab "Try it". */
export const tryUrl = ({ output }: Service): string =>
  /Bellcast is ready\..*\n\n +(http\S+)\n/.exec(output())?.[1] ?? ""

interface Wanted {
  readonly browser: keyof typeof paths
  readonly permission?: "granted" | "prompt"
  /** Where the page is opened: what follows `/v1/console/`. Default: `#/try`. */
  readonly at?: string
  readonly env?: Readonly<Record<string, string>>
}

/** Starts the stage before all tests of a file. In "Try it", alice is logged in by the page. */
export class Stage {
  service!: Service
  autopush!: Autopush
  vendor!: ChromiumVendor
  browser!: Browser
  page!: Page

  constructor(wanted: Wanted) {
    const opened = new AsyncDisposableStack()
    beforeAll(async () => {
      this.service = opened.use(
        // The wait before a push is sent again is no longer than what the push service demands.
        await startDevelopment({ BELLCAST_RETRY_BASE_MILLIS: "200", ...wanted.env })
      )
      this.browser = await this.#startBrowser(wanted, opened)
      const { origin } = new URL(this.service.url)
      await setNotifications(this.browser, origin, wanted.permission ?? "granted")
      this.page = await this.browser.newPage()
      if (wanted.browser === "chromium") await collectViolations(this.page)
      // In a narrow window the list at its bottom may cover the button that a test clicks.
      await this.page.setViewport({ width: 1280, height: 900 })
      await this.open(wanted.at ?? "#/try")
    })
    afterAll(() => opened.disposeAsync())
  }

  readonly #startBrowser = async ({ browser }: Wanted, opened: AsyncDisposableStack) => {
    if (browser === "chromium") {
      this.vendor = opened.use(await startChromiumVendor())
      const chromium = await startChromium(chromiumPath!, this.vendor)
      opened.defer(() => chromium.close())
      return chromium
    }
    this.autopush = opened.use(await startAutopush())
    return opened.use(await startFirefox(firefoxPath!, this.autopush.socketUrl))
  }

  /** Opens a screen, such as `#/sent`. */
  open = (at: string) => this.page.goto(`${this.service.url}/console/${at}`)

  /** Logs in by the page, as anybody may in development. */
  logIn = async (name: string) => {
    await this.page.waitForSelector("[name=user]")
    await this.page.type("[name=user]", name)
    await this.page.type("[name=password]", "demo")
    await this.press("Log in")
    await this.becomes(".who b", new RegExp(`^${name}$`))
  }

  text = (selector: string) =>
    this.page.$eval(selector, ({ textContent }) => textContent ?? "").catch(() => "")

  /** Waits until an element has a text. */
  becomes = (selector: string, expected: RegExp) =>
    until(
      () => this.text(selector),
      (text) => expected.test(text)
    )

  /** Presses the button or link that begins with this text. */
  press = async (text: string) => {
    const handle = await this.page.waitForSelector(
      `::-p-xpath(//*[self::button or self::a][starts-with(normalize-space(.), "${text}")])`
    )
    await handle!.click()
  }

  /** The notifications that are shown; they are closed. */
  shown = async (): Promise<ReadonlyArray<Shown>> =>
    until(
      async () =>
        (await this.page.evaluate(`navigator.serviceWorker.getRegistration()
          .then((registration) => registration.getNotifications())
          .then((all) => all.map((each) => {
            each.close()
            return { title: each.title, body: each.body }
          }))`)) as ReadonlyArray<Shown>,
      ({ length }) => length > 0
    )
}
