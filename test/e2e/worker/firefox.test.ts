// Pushes and clicks in a real Firefox, as src/browser/worker.js handles them.
import { assert, beforeAll, describe, it } from "vitest"
import { publish, until } from "#test/client.ts"
import { firefoxPath } from "../browser.ts"
import { clickNotification } from "../firefox-windows.ts"
import { textOf } from "./chromium-stage.ts"
import { setStage } from "./firefox-stage.ts"

/** Hooks that do what the push says. */
const hooks = `self.bellcast = {
  name: "My site",
  onpush: async (content, event) => {
    content.body = "half changed"
    if (content.hook === "throws") throw new Error("a test")
    if (content.hook === "hangs") await new Promise(() => {})
    if (content.hook === "changes") return { title: event.data.json().title + "!", body: "B" }
    if (content.hook === "empties") return {}
  },
  onclick: async ({ action, data, url }) => {
    self.bellcast.reuse = data === "reuse"
    if (data === "elsewhere") return "/elsewhere"
    if (data === "throws") throw new Error("a test")
    if (data === "hangs") await new Promise(() => {})
    if (data !== "stay") return
    for (const page of await clients.matchAll()) page.postMessage({ action, url })
    return false
  }
}`

const page = `<!doctype html><title>A page of the site</title>
  <script type="module" src="/client.js"></script>`

describe.skipIf(firefoxPath === undefined)("worker.js in Firefox", { timeout: 60_000 }, () => {
  const stage = setStage(`${hooks}\nimportScripts("/bellcast.js")`)
  const paths = ["/first", "/second", "/button", "/framed", "/foreign", "/elsewhere"]
  for (const path of paths) stage.files[path] = page
  stage.files["/client.js"] = textOf("../../../.built/client.js")

  beforeAll(async () => {
    await stage.device(`enable("${stage.service.url}", "alice", "news")`)
  })

  const send = (data: object | undefined) => publish(stage.service.url, "news", data)
  const shows = async (data: object | undefined, expected: string) => {
    await send(data)
    const shown = await until(
      () => stage.device<ReadonlyArray<string>>("taken()"),
      ({ length }) => length > 0
    )
    assert.deepEqual(shown, [expected])
    await stage.autopush.waitFor(({ unacknowledged }) => unacknowledged === 0)
  }

  it("shows pushes of each shape, and one without data", async () => {
    const notification = { title: "A", body: "declarative", navigate: "https://example.org/" }
    await shows({ web_push: 8030, notification }, "A: declarative")
    await shows({ title: "B", body: "plain" }, "B: plain")
    await shows(undefined, "My site: ")
  })

  it("shows what the hook makes of a push", () =>
    shows({ title: "A", body: "a", hook: "changes" }, "A!: B"))

  it.each(["throws", "hangs", "empties"])("shows the original if the hook %s", (hook) =>
    shows({ title: "A", body: "a", hook }, "A: a")
  )

  const urls = async () => (await stage.page.browser().pages()).map((each) => each.url())
  const opens = async (path: string) => {
    const { url } = stage.site
    const list = await until(urls, (all) => all.includes(url + path))
    assert.lengthOf(
      list.filter((each) => each === url + path),
      1
    )
    return list.length
  }

  it("opens what is clicked if there is no page of the site that it controls", async () => {
    const { length } = await urls()
    await send({ title: "First", url: "/first" })
    await clickNotification(stage.page.browser(), "First")
    assert.equal(await opens("/first"), length + 1)
  })

  it("focuses a page that shows already what is clicked", async () => {
    const { length } = await urls()
    await stage.page.bringToFront()
    const pages = await stage.page.browser().pages()
    const first = pages.find((each) => each.url().endsWith("/first"))!
    const hasFocus = () => first.evaluate("document.visibilityState") as Promise<string>
    await until(hasFocus, (state) => state === "hidden")
    await send({ title: "Again", url: "/first" })
    await clickNotification(stage.page.browser(), "Again")
    await until(hasFocus, (state) => state === "visible")
    assert.equal(await opens("/first"), length)
    await first.close()
  })

  it("leads a page that it controls, if the site wants that, to what is clicked", async () => {
    await stage.page.reload()
    const { length } = await urls()
    const actions = [{ action: "one", title: "One", navigate: "/button" }]
    for (const [action, path] of [
      [undefined, "/second"],
      ["one", "/button"],
      ["unknown", "/second"]
    ] as const) {
      await send({
        title: `To ${path} by ${action}`,
        url: "/second",
        actions,
        data: "reuse"
      })
      await clickNotification(stage.page.browser(), `To ${path} by ${action}`, action)
      assert.equal(await opens(path), length)
    }
    await stage.page.goto(stage.site.url)
  })

  /** The same server by another name is another site. */
  const foreign = () => stage.site.url.replace("localhost", "127.0.0.1")

  it("opens an address of another site in a page of its own", async () => {
    const url = `${foreign()}/foreign`
    await send({ title: "Foreign", url })
    await clickNotification(stage.page.browser(), "Foreign")
    await until(urls, (all) => all.includes(url))
    assert.equal(stage.page.url(), `${stage.site.url}/`)
  })

  it("does not take a frame for a page", async () => {
    await stage.page.evaluate(`new Promise((loaded) => {
      const frame = document.createElement("iframe")
      Object.assign(frame, { src: "/framed", onload: loaded })
      document.body.append(frame)
    })`)
    await send({ title: "Framed", url: "/framed" })
    await clickNotification(stage.page.browser(), "Framed")
    await opens("/framed")
    await stage.page.goto(stage.site.url)
  })

  it.each(["throws", "hangs"])("opens the original if the hook %s", async (data) => {
    await send({ title: data, url: `${foreign()}/foreign?${data}`, data })
    await clickNotification(stage.page.browser(), data)
    await until(urls, (all) => all.includes(`${foreign()}/foreign?${data}`))
  })

  it("opens what the hook names, or nothing", async () => {
    await send({ title: "Hook", url: "/third", data: "elsewhere" })
    await clickNotification(stage.page.browser(), "Hook")
    await opens("/elsewhere")
    await stage.page.goto(stage.site.url)
    await send({ title: "Stay", url: "/third", data: "stay" })
    await clickNotification(stage.page.browser(), "Stay")
    const messages = await until(
      () => stage.device<ReadonlyArray<unknown>>("messages.filter(({ bellcast }) => !bellcast)"),
      ({ length }) => length > 0
    )
    assert.deepEqual(messages, [{ action: "", url: `${stage.site.url}/third` }])
    // The next click is handled later, and leaves this page where it is.
    await send({ title: "Last", url: `${foreign()}/foreign?last` })
    await clickNotification(stage.page.browser(), "Last")
    await until(urls, (all) => all.includes(`${foreign()}/foreign?last`))
    assert.equal(stage.page.url(), `${stage.site.url}/`)
  })
})
