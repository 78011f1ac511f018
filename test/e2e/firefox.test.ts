// A real Firefox from end to end. It subscribes with our VAPID key, its page uses the API from
// another origin, and its service worker gets decrypted broadcasts. The cases share one browser.
// Each begins with what a page does on load, so that each can run alone.
import type { Page } from "puppeteer-core"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { type Autopush, startAutopush } from "../support/autopush.ts"
import { call, finished, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { type Service, startService } from "../support/service.ts"
import { firefoxPath, setNotifications, startFirefox } from "./browser.ts"
import { startSite } from "./site.ts"

if (firefoxPath === undefined)
  process.stdout.write("no Firefox here: its tests are skipped (apt-get install firefox-esr)\n")

interface Joined {
  readonly endpoint: string
  readonly subscribed: number
  readonly registered: number
}

describe.skipIf(firefoxPath === undefined)("Firefox", () => {
  const opened: Array<AsyncDisposable> = []
  const keep = <A extends AsyncDisposable>(each: A): A => {
    opened.push(each)
    return each
  }
  let service: Service
  let autopush: Autopush
  let page: Page

  beforeAll(async () => {
    const nats = keep(await startNats())
    autopush = keep(await startAutopush())
    const site = keep(await startSite())
    const [browser, started] = await Promise.all([
      startFirefox(firefoxPath!, autopush.socketUrl).then(keep),
      // The page's origin is named, so that a preflight says yes to it and not to everybody.
      startService({
        natsUrl: nats.url,
        env: { BELLCAST_CORS_ORIGINS: site.url }
      }).then(keep)
    ])
    service = started
    await setNotifications(browser, site.url, "granted")
    page = await browser.newPage()
    await page.goto(`${site.url}/?user=alice&api=${encodeURIComponent(service.url)}`)
  })

  afterAll(async () => {
    for (const each of opened.reverse()) await each[Symbol.asyncDispose]()
  })

  const inPage = async <A>(expression: string): Promise<A> =>
    (await page.evaluate(`site.${expression}`)) as A
  const join = async (channel: string): Promise<Joined> => {
    const joined = await inPage<Joined>(`join("${channel}")`)
    assert.include([200, 201], joined.subscribed)
    assert.equal(joined.registered, 202)
    return joined
  }
  const expectPush = async (text: string | null) => {
    assert.deepEqual(await inPage("next()"), { type: "push", text })
    // The worker reports a push before Firefox acknowledges it. Without the acknowledgement the
    // push is sent again after a reconnect.
    await autopush.waitFor(({ unacknowledged }) => unacknowledged === 0)
  }
  const subscriptions = async () =>
    (await call(service.url, "GET", "/subscriptions", "alice")).body.data as ReadonlyArray<{
      endpoint: string
    }>

  /** Publishes and expects exactly this text in the worker. */
  const arrives = async (channel: string, data: unknown, text: string | null) => {
    const broadcast = await publish(service.url, channel, data)
    await expectPush(text)
    const counts = await finished(service.url, channel, broadcast)
    assert.deepInclude(counts, { accepted: 1, delivered: 1 })
  }

  it("gets a broadcast as it was published, with UTF-8, after it subscribed", async () => {
    const { endpoint, subscribed } = await join("news")
    assert.equal(subscribed, 201)
    assert.deepEqual(await inPage("endpoints()"), [endpoint])
    const data = {
      title: "Grüße 🔔",
      body: "für alle: 日本語",
      nested: { b: 1, a: [true, null, "\u0000\n"] }
    }
    const canonical =
      '{"body":"für alle: 日本語","nested":{"a":[true,null,"\\u0000\\n"],"b":1},"title":"Grüße 🔔"}'
    await arrives("news", data, canonical)
    assert.deepInclude(await inPage<Array<object>>("notifications()"), {
      title: data.title,
      body: data.body
    })
  })

  it("gets a broadcast without data as a push whose data is null", async () => {
    await join("empty")
    await arrives("empty", undefined, null)
  })

  it("gets 3,993 bytes; one more is refused with 413", async () => {
    await join("large")
    // Two bytes each: it is bytes that count, not characters.
    const data = { text: "ü".repeat(1991) }
    assert.equal(Buffer.byteLength(JSON.stringify(data)), 3993)
    await arrives("large", data, JSON.stringify(data))
    const refused = await call(service.url, "POST", "/channels/large", "publisher", {
      data: { text: `${data.text}x` }
    })
    assert.equal(refused.status, 413)
    assert.equal(refused.body.errno, 113)
  })

  it("gets the declarative shape untouched", async () => {
    await join("declarative")
    const notification = {
      body: "Read it",
      lang: "en",
      navigate: "https://example.com/news/1",
      title: "News"
    }
    const data = { app_badge: 1, mutable: true, notification, web_push: 8030 }
    await arrives("declarative", data, JSON.stringify(data))
    assert.deepInclude(await inPage<Array<object>>("notifications()"), {
      title: "News",
      body: "Read it"
    })
  })

  it("gets after a reconnect what was sent while it was away", async () => {
    await join("away")
    autopush.goOffline()
    await autopush.waitFor(({ connected }) => !connected)
    const broadcast = await publish(service.url, "away", { n: 1 })
    await finished(service.url, "away", broadcast)
    assert.equal(await inPage("unread()"), 0)
    autopush.goOnline()
    await expectPush('{"n":1}')
  })

  it("is removed after it unsubscribed: the next push gets 410, the list is empty", async () => {
    const { endpoint } = await join("leaving")
    assert.isTrue(await inPage("unsubscribe()"))
    const agentsOf = (each: Autopush) =>
      each.browsers.flatMap(({ subscriptions }) =>
        [...subscriptions.values()].map(({ agent }) => agent)
      )
    await autopush.waitFor((each) =>
      agentsOf(each).some((agent) => agent.subscription.endpoint === endpoint && agent.unsubscribed)
    )
    const refused = autopush.refusals.length
    const counts = await finished(
      service.url,
      "leaving",
      await publish(service.url, "leaving", { n: 1 })
    )
    assert.deepInclude(counts, { accepted: 1, delivered: 0, gone: 1 })
    assert.deepEqual(autopush.refusals.slice(refused), ["410 unsubscribed"])
    await until(subscriptions, ({ length }) => length === 0)
    assert.deepEqual(await inPage("endpoints()"), [])
  })

  it("gets the next broadcast at a new endpoint after it lost its subscription", async () => {
    const { endpoint: lost } = await join("changing")
    autopush.forget()
    const change = await inPage<Record<string, unknown>>("next()")
    assert.deepInclude(change, { type: "resubscribed", status: 201, lost, newSubscription: null })
    assert.notEqual(change["endpoint"], lost)
    const broadcast = await publish(service.url, "changing", { n: 2 })
    await expectPush('{"n":2}')
    const counts = await finished(service.url, "changing", broadcast)
    assert.deepInclude(counts, { accepted: 2, delivered: 1, gone: 1 })
    await until(
      subscriptions,
      (list) => list.length === 1 && list[0]?.endpoint === change["endpoint"]
    )
  })

  it("decrypts each push, gets it once, refuses only pushes to lost subscriptions", async () => {
    await join("last")
    await arrives("last", { n: 3 }, '{"n":3}')
    const { acknowledgements, refusals } = autopush
    assert.deepEqual(
      acknowledgements.filter(({ code }) => code !== 100),
      []
    )
    assert.equal(
      new Set(acknowledgements.map(({ version }) => version)).size,
      acknowledgements.length
    )
    assert.deepEqual(
      refusals.filter((each) => each !== "410 unsubscribed"),
      []
    )
    assert.equal(await inPage("unread()"), 0)
  })
})
