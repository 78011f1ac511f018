// How src/browser/worker.js renews a subscription without a login, in a real Firefox whose push
// service ended it.
import { afterEach, assert, beforeEach, describe, it } from "vitest"
import webpush from "web-push"
import { call, publish, until } from "#test/client.ts"
import { firefoxPath, setNotifications } from "../browser.ts"
import { setStage } from "./firefox-stage.ts"

interface State {
  readonly user: string | null
  readonly endpoint: string
  readonly renewal: string | null
}

/** Reports each event when the listener of worker.js, which asked for the lock before, is done. */
const reports = `addEventListener("pushsubscriptionchange", (event) => event.waitUntil(
  navigator.locks.request("bellcast:" + registration.scope, async () => {
    for (const page of await clients.matchAll({ includeUncontrolled: true }))
      page.postMessage("changed")
  })))`

describe.skipIf(firefoxPath === undefined)("worker.js renews", { timeout: 60_000 }, () => {
  const stage = setStage(
    `import "/bellcast.js"
    ${reports}`
  )
  const { device } = stage
  let first: string
  let count = 0

  // Each test is a user of its own in a channel of its own.
  const userOf = () => `user${count}`
  beforeEach(async () => {
    count += 1
    await setNotifications(stage.page.browser(), stage.site.url, "granted")
    const { url } = stage.service
    first = await device<string>(`enable("${url}", "${userOf()}", "of-${userOf()}", "module")`)
    await device("messages.splice(0)")
  })
  afterEach(() => device("unsubscribe()"))

  const state = () => device<State>("record()")
  const endpoint = () => device<string | undefined>("endpoint()")
  const storedEndpoints = async () => {
    const { body } = await call(stage.service.url, "GET", "/subscriptions", userOf())
    return (body.data as ReadonlyArray<{ endpoint: string }>).map((each) => each.endpoint)
  }
  const reported = () =>
    until(
      () => device<ReadonlyArray<string>>("messages.splice(0)"),
      ({ length }) => length > 0
    )
  const loses = async () => {
    stage.autopush.forget()
    await reported()
  }
  const expectShown = async () => {
    await publish(stage.service.url, `of-${userOf()}`, { title: "News", body: userOf() })
    const shown = await until(
      () => device<ReadonlyArray<string>>("taken()"),
      ({ length }) => length > 0
    )
    assert.deepEqual(shown, [`News: ${userOf()}`])
  }

  it("a subscription that the push service ended, again and again", async () => {
    let last = await state()
    for (const _ of [1, 2]) {
      await loses()
      const renewed = await state()
      assert.notEqual(renewed.endpoint, last.endpoint)
      assert.notEqual(renewed.renewal, last.renewal)
      assert.equal(await endpoint(), renewed.endpoint)
      assert.deepEqual(await storedEndpoints(), [renewed.endpoint])
      last = renewed
    }
    await expectShown()
  })

  it("by the first key of a record that names imported ones, too", async () => {
    const { key } = await device<{ readonly key: string }>("record()")
    await device(`change({ key: "${key},${webpush.generateVAPIDKeys().publicKey}" })`)
    await loses()
    assert.notEqual((await state()).endpoint, first)
    assert.deepEqual(await storedEndpoints(), [(await state()).endpoint])
    await expectShown()
  })

  it("when the permission was taken and is granted again", async () => {
    const browser = stage.page.browser()
    await setNotifications(browser, stage.site.url, "denied")
    await until(endpoint, (each) => each === undefined)
    await setNotifications(browser, stage.site.url, "granted")
    await reported()
    assert.notEqual((await state()).endpoint, first)
    assert.deepEqual(await storedEndpoints(), [(await state()).endpoint])
    await expectShown()
  })

  const expectNothing = async () => {
    assert.isUndefined(await endpoint())
    assert.deepEqual(await storedEndpoints(), [first])
    assert.equal((await state()).endpoint, first)
  }

  it("nothing when nobody is signed in", async () => {
    await device("change({ user: null })")
    await loses()
    await expectNothing()
  })

  it("nothing when the user who is signed in wants no pushes here", async () => {
    await device(`change({ on: { "${userOf()}": false, another: true } })`)
    await loses()
    await expectNothing()
  })

  it("nothing when another user is signed in who never pressed a button", async () => {
    await device(`change({ user: "another" })`)
    await loses()
    await expectNothing()
  })

  it.each(["constructor", "__proto__"])("nothing for %s, who never pressed one", async (user) => {
    await device(`change({ user: "${user}" })`)
    await loses()
    await expectNothing()
  })

  it("nothing without its storage, and lets go of the lock", async () => {
    // A database that something else made has no store.
    await device("remake(() => {})")
    await loses()
    assert.isUndefined(await endpoint())
    await device(`remake((database) => database.createObjectStore("state"))`)
  })

  it("nothing without a renewal secret", async () => {
    await device("change({ renewal: null })")
    await loses()
    await expectNothing()
  })

  it("after the page that works on the subscription, by what that page stored", async () => {
    await device("lock()")
    stage.autopush.forget()
    // The page and the worker wait for the lock; so does a renewal that failed in an earlier test.
    await until(
      () => device<number>("waiting()"),
      (waiting) => waiting >= 2
    )
    await device("change({ user: null })")
    await device("unlock()")
    await reported()
    await expectNothing()
  })

  it("no more with a secret that the service refuses", async () => {
    await device(`change({ renewal: "void" })`)
    await loses()
    assert.isNull((await state()).renewal)
    assert.equal((await state()).endpoint, first)
  })

  it.each([
    ["the service did not respond", undefined],
    ["the network answered instead of it", '{"login":"required"}'],
    ["a proxy refused the request", { body: "<h1>Forbidden</h1>", status: 403 }]
  ])("once more when %s", async (_, answer) => {
    if (answer !== undefined) stage.files["/v1/subscriptions/replace"] = answer
    const { renewal: secret } = await state()
    await device(`change({ api: "${stage.site.url}/v1" })`)
    await loses()
    assert.deepInclude(await state(), { endpoint: first, renewal: secret })
    stage.files["/v1/subscriptions/replace"] = '{ "renewal": "next" }'
    const { endpoint: renewed } = await until(state, ({ renewal }) => renewal === "next")
    assert.equal(renewed, await endpoint())
    delete stage.files["/v1/subscriptions/replace"]
  })
})
