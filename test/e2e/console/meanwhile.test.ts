// While a screen of the console is open, others change what it shows, the login ends, or a
// broadcast begins. Nothing is lost, and nothing stays as it was for ever.
import type { Browser } from "puppeteer-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, until } from "#test/client.ts"
import { startDevelopment } from "#test/development.ts"
import { startPushService } from "#test/push-service.ts"
import { secretEnvironment } from "#test/service.ts"
import { useShared } from "#test/use-service.ts"
import { idOf } from "#test/users.ts"
import { chromiumPath, startChromium } from "../browser.ts"
import { addReaders, Desk } from "./desk.ts"

const shared = useShared(async (opened) => {
  const rights = {
    BELLCAST_OPERATOR_PRINCIPALS: idOf("olga"),
    BELLCAST_USER_WRITE_PRINCIPALS: idOf("alice")
  }
  const { BELLCAST_USERID_HMAC_SECRET } = secretEnvironment
  const { url } = opened.use(await startDevelopment({ BELLCAST_USERID_HMAC_SECRET, ...rights }))
  const push = opened.use(await startPushService({ decrypt: false }))
  await addReaders(url, push, 3)
  return { url }
})

/** As alice published it. At one push a second it is being sent for a minute. Returns the id. */
const publish = async (more: object): Promise<string> => {
  const notification = { title: "Dear all", navigate: "https://example.org/", tag: "letter" }
  const { body, status } = await call(shared.url, "POST", "/broadcasts", "alice", {
    data: { web_push: 8030, notification },
    to: { channels: ["news"] },
    ...more
  })
  expect(status).toBe(202)
  return body.id
}

const read = async (path: string) => (await call(shared.url, "GET", path, "alice")).body.data

/** Requests of the page wait, fail or are refused as `window.meanwhile` says. */
const wrapFetch = `{
  const real = fetch
  const cut = new AbortController()
  window.meanwhile = { isLoggedOut: false, before: () => {}, answer: () => {} }
  meanwhile.cut = () => cut.abort()
  window.fetch = async (url, options = {}) => {
    if (meanwhile.isLoggedOut)
      return Response.json({ error_code: "unauthenticated" }, { status: 401 })
    await meanwhile.before(String(url), options)
    const answer = meanwhile.answer(String(url))
    if (answer) return answer
    const signals = String(url).endsWith("/events") && !cut.signal.aborted ? [cut.signal] : []
    if (options.signal) signals.push(options.signal)
    return real(url, { ...options, signal: AbortSignal.any(signals) })
  }
}`

describe.skipIf(chromiumPath === undefined)("meanwhile", { timeout: 120_000 }, () => {
  let browser: Browser
  let desk: Desk
  beforeAll(async () => {
    browser = await startChromium(chromiumPath!)
  })
  afterAll(() => browser?.close())

  /** A new tab, in which somebody looks at a screen. */
  const look = async (at: string, user = "alice") => {
    const page = await browser.newPage()
    await page.setViewport({ width: 1280, height: 900 })
    await page.evaluateOnNewDocument(wrapFetch)
    desk = new Desk(shared.url, page)
    await desk.open(at, user)
  }

  it("a draft that somebody changed is not deleted before that was seen", async () => {
    const put = (title: string) =>
      call(
        shared.url,
        "PUT",
        "/drafts/storm",
        "alice",
        { data: { data: { web_push: 8030, notification: { title } } } },
        title === "Storm" ? {} : { "if-match": "*" }
      )
    await put("Storm")
    await look("#/drafts")
    await desk.becomes(".rows", /Storm/)
    await put("Storm, with the worst")
    await desk.press("Delete")
    await desk.press("Delete", "dialog")
    await desk.becomes(".box.error", /Somebody changed it meanwhile/)
    await desk.becomes(".rows", /Storm, with the worst/)
    await desk.press("Delete")
    await desk.press("Delete", "dialog")
    await desk.becomes("#main", /^(?!.*Storm, with)/s)
    expect(await read("/drafts/storm")).toBeUndefined()
  })

  it("a broadcast is followed again once somebody whose login ended logged in", async () => {
    const id = await publish({ rate: 1 })
    await look(`#/broadcast/${id}`)
    await desk.becomes("#main .heading .badge", /^Sending$/)
    await desk.page.evaluate("meanwhile.isLoggedOut = true; meanwhile.cut()")
    await desk.becomes("dialog", /Log in/)
    await desk.page.evaluate("meanwhile.isLoggedOut = false")
    await desk.page.type("dialog [name=user]", "alice")
    await desk.page.type("dialog [name=password]", "secret")
    await desk.page.keyboard.press("Enter")
    await desk.page.waitForFunction(`!document.querySelector("dialog")`)
    const data = { state: "cancelled" }
    await call(shared.url, "PATCH", `/broadcasts/${id}`, "alice", { data })
    await desk.becomes("#main .heading .badge", /^Stopped$/)
    await desk.becomes("#main", /^(?!.*login)/s)
  })

  it("a broadcast that begins is not stopped half way by Unschedule", async () => {
    const name = "Begins at once"
    const at = new Date(Date.now() + 6_000).toISOString()
    const id = await publish({ at, rate: 1, name })
    await look(`#/broadcast/${id}`)
    await desk.page.exposeFunction("begun", () =>
      until(
        () => read(`/broadcasts/${id}`),
        ({ state }) => state === "running"
      )
    )
    await desk.press("Unschedule")
    await desk.becomes("dialog", /becomes a draft/)
    await desk.page.evaluate(`{
      meanwhile.before = (url, { method }) => method === "PATCH" && begun()
    }`)
    await desk.press("Unschedule, open the draft", "dialog")
    await desk.becomes("#main .box.error", /It is too late: Sending/)
    expect(await read(`/broadcasts/${id}`)).toMatchObject({ state: "running" })
    const drafts = (await read("/drafts")) as ReadonlyArray<{ readonly name?: string }>
    expect(drafts.filter((each) => each.name === name)).toEqual([])
  })

  const tomorrow = () => ({ at: new Date(Date.now() + 86_400_000).toISOString() })
  const titleShown = () => desk.page.$eval("[name=title]", (field) => (field as never)["value"])
  const change = (id: string, data: object) =>
    call(shared.url, "PATCH", `/broadcasts/${id}`, "alice", { data })

  it("what was typed in Edit is there after another screen, and after a reload", async () => {
    const id = await publish(tomorrow())
    await look(`#/broadcast/${id}/edit`)
    await desk.type("title", "Dear readers")
    await desk.press("Notifications")
    await desk.becomes("h1", /^Notifications$/)
    await desk.page.goBack()
    await desk.becomes(".foot", /Not saved: until then/)
    expect(await titleShown()).toBe("Dear readers")
    desk.page.on("dialog", (dialog) => void dialog.accept())
    await desk.page.reload()
    await desk.becomes(".foot", /Not saved: until then/)
    expect(await titleShown()).toBe("Dear readers")
    await desk.press("Notifications")
    const { data } = await read(`/broadcasts/${id}`)
    const notification = { ...data.notification, title: "Dear editors" }
    await change(id, { data: { ...data, notification } })
    await desk.page.goBack()
    await desk.becomes(".box.warning", /Dear readers\s+Dear editors/)
    await desk.press("Cancel")
    await desk.press("Edit")
    await desk.becomes(".foot", /Nothing changed yet/)
    expect(await titleShown()).toBe("Dear editors")
  })

  it("what was typed in Edit is in the draft that Unschedule makes", async () => {
    const id = await publish(tomorrow())
    await look(`#/broadcast/${id}/edit`)
    await desk.type("title", "Dear readers")
    await desk.press("Unschedule")
    await desk.press("Unschedule, open the draft", "dialog")
    const draft = await read(`/drafts/${await desk.id("draft")}`)
    expect(draft.data.notification).toMatchObject({ title: "Dear readers", tag: "letter" })
    expect(draft.to).toEqual({ channels: ["news"] })
  })

  it("what was typed in Edit on a former form is there after Unschedule", async () => {
    const id = await publish(tomorrow())
    await look(`#/broadcast/${id}/edit`)
    await desk.type("title", "Dear readers")
    const { data } = await read(`/broadcasts/${id}`)
    const notification = { ...data.notification, title: "Dear editors" }
    await change(id, { data: { ...data, notification } })
    await desk.press("Unschedule")
    await desk.press("Unschedule, open the draft", "dialog")
    await desk.becomes(".box.warning", /It is too late to edit it/)
    expect(await read(`/broadcasts/${id}`)).toMatchObject({ state: "cancelled" })
    await desk.press("View")
    await desk.becomes(".box.warning", /What you typed in Edit is not saved/)
    await desk.press("Back to what I typed")
    await desk.press("Make a draft of what I typed")
    const draft = await read(`/drafts/${await desk.id("draft")}`)
    expect(draft.data.notification.title).toBe("Dear readers")
  })

  it("what was typed in Edit can become a draft once it is too late", async () => {
    const id = await publish(tomorrow())
    await look(`#/broadcast/${id}/edit`)
    await desk.type("title", "Dear readers")
    await change(id, { state: "cancelled" })
    await desk.press("Save the change")
    await desk.becomes(".box.warning", /It is too late to edit it/)
    await desk.press("Make a draft of what I typed")
    const draft = await read(`/drafts/${await desk.id("draft")}`)
    expect(draft.data.notification.title).toBe("Dear readers")
  })

  it("all that is being sent but tests is counted, and of too many a part", async () => {
    const ids = await Promise.all(Array.from({ length: 22 }, () => publish({ rate: 1 })))
    const test = { rate: 1, test: true, to: { users: [idOf("reader0"), idOf("reader1")] } }
    ids.push(await publish(test))
    await look("#/drafts", "olga")
    /** As the page says, and as the service lists them. */
    const counts = async () => {
      const { body } = await call(shared.url, "GET", "/broadcasts?state=running&_limit=50", "olga")
      const rows = body.data as ReadonlyArray<{ readonly test?: true }>
      const others = rows.filter((each) => each.test !== true)
      return [await desk.text(".tabs .count"), others.length, rows.length] as const
    }
    await until(
      counts,
      ([shown, others, all]) => shown === String(others) && others >= 22 && all > others
    )
    // A list whose pages have one row each, for ever.
    const row = await read(`/broadcasts/${ids[0]}`)
    await desk.page.evaluate(`meanwhile.answer = (url) => /state=running/.test(url) &&
      Response.json({ data: [${JSON.stringify(row)}] }, { headers: { "next-page": url } })`)
    await desk.press("Try it")
    await desk.press("Notifications")
    await desk.becomes(".tabs .count", /^5\+$/)
    await Promise.all(ids.map((id) => change(id, { state: "cancelled" })))
  })
})
