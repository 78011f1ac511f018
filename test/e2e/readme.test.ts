// The page of README.md in a real Firefox: with the files that the service serves, from an origin
// of its own, by a click on its button.
import { readFileSync } from "node:fs"
import { afterAll, assert, describe, it } from "vitest"
import { startAutopush } from "#test/autopush.ts"
import { publish, until } from "#test/client.ts"
import { startNats } from "#test/nats.ts"
import { startService } from "#test/service.ts"
import { firefoxPath, setNotifications, startFirefox } from "./browser.ts"
import { answerPrompt } from "./firefox-windows.ts"
import { type SiteFiles, startPages } from "./site.ts"

const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8")
const section = readme.slice(readme.indexOf("## In a web page"))
const [page = "", broadcast = ""] = [...section.matchAll(/^```\w+\n(.*?)^```$/gms)].map(
  ([, text]) => text!
)

describe.skipIf(firefoxPath === undefined)("the page of README.md", () => {
  const opened = new AsyncDisposableStack()
  afterAll(() => opened.disposeAsync())

  it("subscribes at a click on its button, and shows the broadcast", {
    timeout: 120_000
  }, async () => {
    const nats = opened.use(await startNats())
    const autopush = opened.use(await startAutopush())
    const files: SiteFiles = {}
    const site = opened.use(await startPages(files))
    const env = { BELLCAST_CORS_ORIGINS: site.url }
    const service = opened.use(await startService({ natsUrl: nats.url, env }))
    const ofService = async (name: string) => (await fetch(`${service.url}/${name}`)).text()
    files["/"] = page.replace(/"https:[^"]+"/, JSON.stringify(service.url))
    assert.notEqual(files["/"], page)
    files["/push-token"] = /`(Basic \S+)`/.exec(section)![1]!
    files["/bellcast/client.js"] = await ofService("client.js")
    files["/bellcast/worker.js"] = await ofService("worker.js")
    const browser = opened.use(await startFirefox(firefoxPath!, autopush.socketUrl))
    await setNotifications(browser, site.url, "prompt")
    const tab = await browser.newPage()
    await tab.goto(site.url)
    await until(
      () => tab.evaluate("bell.onclick !== null"),
      (isReady) => isReady === true
    )
    await tab.click("#bell")
    await answerPrompt(tab, "Allow")
    const { data } = JSON.parse(broadcast)
    // A broadcast reaches this browser only after the client has joined the channel.
    await until(
      async () => publish(service.url, "news", data).then(() => autopush.acknowledgements.length),
      (acknowledged) => acknowledged > 0
    )
    const shown = `navigator.serviceWorker.getRegistration("/bellcast/")
      .then((registration) => registration.getNotifications())
      .then((all) => all.map(({ title, body }) => ({ title, body })))`
    const { body, title } = data.notification
    const [first] = await until(
      async () => (await tab.evaluate(shown)) as ReadonlyArray<object>,
      ({ length }) => length > 0
    )
    assert.deepEqual(first, { title, body })
  })
})
