// The stage of tests of the demo: a service as `make run` starts it, a push service on loopback,
// and the page in a real Firefox.
import type { Browser, Page } from "puppeteer-core"
import { afterAll, beforeAll } from "vitest"
import { type Autopush, startAutopush } from "#test/autopush.ts"
import { until } from "#test/client.ts"
import { startDevelopment } from "#test/development.ts"
import type { Service } from "#test/service.ts"
import { firefoxPath, setNotifications, startFirefox } from "../browser.ts"

if (firefoxPath === undefined)
  process.stdout.write("no Firefox here: its tests are skipped (apt-get install firefox-esr)\n")

export interface Shown {
  readonly title: string
  readonly body: string
}

/** The address of the demo that a start prints first. */
export const demoUrl = ({ output }: Service): string =>
  /Bellcast is ready\..*\n\n +(http\S+)\n/.exec(output())?.[1] ?? ""

/** Starts the stage before all tests of a file. */
export class Stage {
  service!: Service
  autopush!: Autopush
  browser!: Browser
  page!: Page

  constructor(permission: "granted" | "prompt") {
    const opened = new AsyncDisposableStack()
    beforeAll(async () => {
      this.service = opened.use(
        // The wait before a push is sent again is no longer than what the push service demands.
        await startDevelopment({ BELLCAST_RETRY_BASE_MILLIS: "200" })
      )
      this.autopush = opened.use(await startAutopush())
      this.browser = opened.use(await startFirefox(firefoxPath!, this.autopush.socketUrl))
      await setNotifications(this.browser, new URL(this.service.url).origin, permission)
      this.page = await this.browser.newPage()
      // In a narrow window the list at its bottom may cover the button that a test clicks.
      await this.page.setViewport({ width: 1280, height: 900 })
      await this.page.goto(demoUrl(this.service))
    })
    afterAll(() => opened.disposeAsync())
  }

  text = (selector: string) =>
    this.page.$eval(selector, ({ textContent }) => textContent ?? "").catch(() => "")

  /** Waits until an element has a text. */
  becomes = (selector: string, expected: RegExp) =>
    until(
      () => this.text(selector),
      (text) => expected.test(text)
    )

  /** Presses the button that begins with this text. */
  press = async (text: string) => {
    const handle = await this.page.waitForSelector(
      `::-p-xpath(//button[starts-with(., "${text}")])`
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
