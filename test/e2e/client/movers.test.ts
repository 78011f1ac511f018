// A site moves in with many browsers: containers of one real Firefox, so each has a worker, a
// record, a permission and a subscription of its own. All run client.js and worker.js. Others that
// were imported with them do not come back.
// MOVERS=200 is what a site may see in a minute; 4 take some seconds. IMPORT_SUBSCRIPTIONS=10000 is
// the size of a site.
import type { BrowserContext, Page } from "puppeteer-core"
import { beforeAll, describe, expect, it } from "vitest"
import { channelsOf, finished, publish, registrationsSeen, until } from "#test/client.ts"
import { formerKeys, formerPair, importAll } from "#test/imports.ts"
import { spawnPushService } from "#test/spawn-push-service.ts"
import { firefoxPath, setNotifications } from "../browser.ts"
import { Stage } from "./stage.ts"

const count = Number(process.env["MOVERS"] ?? 4)
const others = Number(process.env["IMPORT_SUBSCRIPTIONS"] ?? 100)
/** Pages that are open at a time. */
const atOnce = 2

/** A busy Firefox may lose a tab while it opens. */
const openIn = (context: BrowserContext) => context.newPage().catch(() => context.newPage())

// The site's hook notes each push: notifications that nobody clicks vanish.
const worker = `
self.bellcast = {
  async onpush({ title }) {
    const pushes = await caches.open("pushes")
    await pushes.put("/" + title + "?" + crypto.randomUUID(), new Response(registration.scope))
  }
}
importScripts("/worker.js")`

/** Path of the worker and title of each push that the browser got, oldest first. */
const got = (page: Page) =>
  page.evaluate(`(async () => {
    const pushes = await caches.open("pushes")
    const all = await pushes.keys()
    return Promise.all(all.map(async (each) => {
      const scope = await (await pushes.match(each)).text()
      return new URL(scope).pathname + " " + new URL(each.url).pathname.slice(1)
    }))
  })()`) as Promise<ReadonlyArray<string>>

describe.skipIf(firefoxPath === undefined)("many browsers that move in", () => {
  const stage = new Stage()
  const contexts: Array<BrowserContext> = []
  beforeAll(async () => {
    await stage.service.kill()
    await stage.startService(formerKeys)
    stage.files["/old/worker.js"] = worker
    stage.files["/new.js"] = worker
  })

  /** Opens the site in each browser. */
  const visit = async (task: (page: Page, n: number) => Promise<void>) => {
    let next = 0
    const hand = async () => {
      while (next < count) {
        const n = next++
        contexts[n] ??= await stage.browser.createBrowserContext()
        await setNotifications(contexts[n], stage.site.url, "granted")
        const page = await openIn(contexts[n])
        await page.goto(`${stage.site.url}/`)
        await task(page, n)
        await page.close()
      }
    }
    await Promise.all(Array.from({ length: atOnce }, hand))
  }

  it("misses no push and gets none twice, while all run the client", {
    timeout: 60_000 + count * 10_000
  }, async () => {
    const { service, user: channel } = stage
    await using push = await spawnPushService()
    const applicationServerKey = formerPair.publicKey
    const staying = await push.subscribe(others, { applicationServerKey })
    const send = async (title: string) => {
      const broadcast = await publish(service.url, channel, { title })
      const counts = await finished(service.url, channel, broadcast, 120_000)
      expect(counts).toMatchObject({ accepted: count + others, delivered: count + others })
      // An acknowledged push was given to its worker.
      await stage.autopush.waitFor(({ unacknowledged }) => unacknowledged === 0, 120_000)
      const report = await push.report()
      expect(report).toMatchObject({ counts: { distinct: others, duplicates: 0 }, faults: [] })
      await push.reset()
    }
    const old: Array<unknown> = []
    await visit(async (page, n) => {
      old[n] = await page.evaluate(`device.subscribeBy("/old/", "${applicationServerKey}")`)
    })
    await importAll(stage.nats.url, [...old, ...staying], "--channel", channel)
    await send("first")
    const begin = performance.now()
    await visit(async (page, n) => {
      const user = `mover${n}`
      await stage.connect(page, { user, adopt: true, worker: "/new.js" })
      await stage.expect(page, "on")
      expect(await page.evaluate("device.endpoints()")).toEqual([await stage.endpoint(page)])
      expect(await stage.stored(user)).toEqual([await stage.endpoint(page)])
      expect(await channelsOf(service.url, user)).toEqual([channel])
    })
    process.stdout.write(`${count} browsers moved in ${Math.round(performance.now() - begin)} ms\n`)
    await until(
      () => registrationsSeen(service.url, channel, "mover0"),
      (seen) => seen === count + others
    )
    await send("second")
    const all: Array<ReadonlyArray<string>> = []
    await visit(async (page, n) => {
      all[n] = await got(page)
    })
    expect(all).toEqual(Array.from({ length: count }, () => ["/old/ first", "/ second"]))
  })
})
