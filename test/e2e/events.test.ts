// The EventSource of real browsers: a site passes its requests on with credentials, as
// EventSource sends none.
import { once } from "node:events"
import { createServer, request } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { changeState } from "#test/broadcast-states.ts"
import { basic, join, publish, until } from "#test/client.ts"
import { startNats } from "#test/nats.ts"
import { type PushService, startPushService } from "#test/push-service.ts"
import { type Service, startService } from "#test/service.ts"
import { chromiumPath, firefoxPath, startChromium, startFirefox } from "./browser.ts"

/** A site whose requests below /v1/ go to the service as those of a publisher. */
const startSite = async ({ port }: Service) => {
  const server = createServer(({ headers, url = "" }, response) => {
    if (!url.startsWith("/v1/"))
      return void response
        .setHeader("content-type", "text/html")
        .end("<!doctype html><title>Site</title>")
    const passed = { ...headers, authorization: basic("publisher") }
    const upstream = request({ host: "127.0.0.1", port, path: url, headers: passed }, (answer) =>
      answer.pipe(response.writeHead(answer.statusCode ?? 0, answer.headers))
    )
    upstream.on("error", () => response.destroy()).end()
    response.on("close", () => upstream.destroy())
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}`,
    /** Breaks all connections. */
    cut: () => server.closeAllConnections(),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
  }
}

interface Seen {
  readonly opened: number
  readonly readyState: number
  /** How many different events there were. */
  readonly distinct: number
  readonly states: ReadonlyArray<string>
}

const browsers = [
  ["Firefox", firefoxPath, startFirefox],
  ["Chromium", chromiumPath, startChromium]
] as const

describe("a stream of events", () => {
  const opened = new AsyncDisposableStack()
  let push: PushService
  let service: Service
  let site: Awaited<ReturnType<typeof startSite>>
  beforeAll(async () => {
    const nats = opened.use(await startNats())
    push = opened.use(await startPushService())
    service = opened.use(await startService({ natsUrl: nats.url }))
    site = opened.use(await startSite(service))
  })
  afterAll(() => opened.disposeAsync())

  for (const [name, path, start] of browsers)
    it.skipIf(path === undefined)(
      `goes on in the EventSource of ${name} after a break, without an event twice, and ends it`,
      { timeout: 120_000 },
      async () => {
        const { subscription } = push.subscribe({ script: ["503 retry-after 600"] })
        await join([service.url], name, [subscription], 1, name)
        const id = await publish(service.url, name, { n: 1 })
        await using stack = new AsyncDisposableStack()
        const browser = await start(path!)
        stack.defer(() => browser.close())
        const page = await browser.newPage()
        await page.goto(site.url)
        await page.evaluate(`
          window.opened = 0
          window.data = []
          window.source = new EventSource("/v1/broadcasts/${id}/events")
          source.onopen = () => opened++
          source.onmessage = (event) => data.push(event.data)`)
        const when = (accept: (seen: Seen) => boolean) =>
          until(
            () =>
              page.evaluate(`({
                opened, readyState: source.readyState, distinct: new Set(data).size,
                states: data.map((text) => {
                  const { retrying, state } = JSON.parse(text)
                  return retrying > 0 ? "retrying" : state
                })
              })`) as Promise<Seen>,
            accept
          )
        await when(({ states }) => states.at(-1) === "retrying")
        site.cut()
        await when((seen) => seen.opened === 2)
        await changeState(service.url, id, "cancelled")
        const { distinct, states } = await when(({ readyState }) => readyState === 2)
        assert.equal(states.at(-1), "cancelled")
        assert.equal(distinct, states.length)
      }
    )
})
