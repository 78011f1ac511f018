// The stage of tests of src/browser/worker.js in Firefox: the service, a push service that speaks
// Firefox's protocol, a site with the worker, and a page of it in a Firefox that subscribed.
import { readFileSync } from "node:fs"
import type { Page } from "puppeteer-core"
import { afterAll, beforeAll } from "vitest"
import { type Autopush, startAutopush } from "#test/autopush.ts"
import { startNats } from "#test/nats.ts"
import { type Service, startService } from "#test/service.ts"
import { firefoxPath, setNotifications, startFirefox } from "../browser.ts"
import { type Site, type SiteFiles, startPages } from "../site.ts"

if (firefoxPath === undefined)
  process.stdout.write("no Firefox here: its tests are skipped (apt-get install firefox-esr)\n")

const textOf = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8")

const html = `<!doctype html><title>Site</title><link rel="icon" href="data:,">
<script type="module" src="/device.js"></script>`

export interface Stage {
  autopush: Autopush
  service: Service
  site: Site
  /** Changes take effect at once. */
  files: SiteFiles
  page: Page
  /** Evaluates `device.` and the expression in the page (device.js). */
  readonly device: <A>(expression: string) => Promise<A>
}

/** Starts the stage before all tests of a file. `worker`: the site's own service worker. */
export const setStage = (worker: string): Stage => {
  const opened = new AsyncDisposableStack()
  const stage = {
    files: {
      "/": html,
      "/device.js": textOf("device.js"),
      "/records.js": textOf("../records.js"),
      "/bellcast.js": textOf("../../../.built/worker.js"),
      "/worker.js": worker
    },
    device: (expression: string) => stage.page.evaluate(`device.${expression}`)
  } as unknown as Stage
  beforeAll(async () => {
    const nats = opened.use(await startNats())
    stage.autopush = opened.use(await startAutopush())
    stage.site = opened.use(await startPages(stage.files))
    const env = { BELLCAST_CORS_ORIGINS: stage.site.url }
    stage.service = opened.use(await startService({ natsUrl: nats.url, env }))
    const browser = opened.use(await startFirefox(firefoxPath!, stage.autopush.socketUrl))
    await setNotifications(browser, stage.site.url, "granted")
    stage.page = await browser.newPage()
    await stage.page.goto(stage.site.url)
  })
  afterAll(() => opened.disposeAsync())
  return stage
}
