// Notifications that src/browser/worker.js shows of any data, in a real Chromium.
import { assert, describe, it } from "vitest"
import { chromiumPath } from "../browser.ts"
import { after, Stage, worker } from "./chromium-stage.ts"

const files = {
  "/worker.js": worker,
  "/badges.js": after(`self.badges = []
    navigator.setAppBadge = async (number) => badges.push(number)`)
}

describe.skipIf(chromiumPath === undefined)("worker.js in Chromium", { timeout: 60_000 }, () => {
  const stage = new Stage(files)

  it("shows a declarative push with its options, and keeps what its clicks open", async () => {
    const shown = await stage.push(
      JSON.stringify({
        web_push: 8030,
        notification: {
          title: "Grüße",
          body: "für alle",
          tag: "t",
          icon: "/icon.png",
          navigate: "https://example.org/news/1",
          data: { id: 1 },
          actions: [
            { action: "read", title: "Read", navigate: "https://example.org/read" },
            { action: "mute", title: "Mute" }
          ]
        }
      })
    )
    assert.deepEqual(shown, {
      title: "Grüße",
      body: "für alle",
      tag: "t",
      icon: `${stage.site.url}/icon.png`,
      actions: [
        { action: "read", title: "Read" },
        { action: "mute", title: "Mute" }
      ],
      data: {
        bellcast: {
          target: "https://example.org/news/1",
          targets: [
            ["read", "https://example.org/read"],
            ["mute", null]
          ],
          data: { id: 1 }
        }
      }
    })
  })

  it("shows a plain push", async () => {
    for (const notification of [undefined, null, "text", 5]) {
      const plain = { title: "News", body: "Text", url: "/news?page=2#a", notification }
      const { title, body, data } = await stage.push(JSON.stringify(plain))
      assert.deepEqual([title, body], ["News", "Text"])
      assert.equal(data.bellcast.target, `${stage.site.url}/news?page=2#a`)
    }
  })

  it("keeps only addresses of the web", async () => {
    const { data } = await stage.push(
      JSON.stringify({
        title: "News",
        url: "javascript:alert(1)",
        actions: [{ action: "a", title: "A", url: "data:text/html,x" }]
      })
    )
    assert.deepEqual(data.bellcast, { targets: [["a", null]] })
  })

  it("shows the host of the site for a push without a title", async () => {
    for (const data of [
      ...["", "no JSON", "5", "null", "[]", "[1]", '"text"', "{}"],
      ...['{"title":5}', '{"title":""}', '{"title":{}}', '{"notification":{}}'],
      ...['{"web_push":8030,"notification":null}', '{"notification":"text"}']
    ])
      assert.equal((await stage.push(data)).title, new URL(stage.site.url).host, data)
  })

  it("shows title and text if the browser refuses the options", async () => {
    for (const options of [
      ...[{ renotify: true }, { silent: true, vibrate: [1] }, { dir: "up" }, { timestamp: "x" }],
      ...[{ actions: [{}] }, { actions: 5 }, { actions: [null] }, { vibrate: {} }, { icon: {} }]
    ]) {
      const { title, body, data } = await stage.push(
        JSON.stringify({ title: "News", body: "Text", url: "/1", ...options })
      )
      const told = JSON.stringify(options)
      assert.deepEqual([title, body], ["News", "Text"], told)
      assert.equal(data.bellcast.target, `${stage.site.url}/1`, told)
    }
  })

  it("takes null for an absent option", async () => {
    const { body } = await stage.push(
      '{"title":"News","body":null,"actions":null,"timestamp":null}'
    )
    assert.equal(body, "")
  })

  it("sets the badge that stands at the top level or, as in Safari 18.4, inside", async () => {
    await stage.register("/badges.js", "/badges/")
    for (const data of [
      { app_badge: 3, title: "A" },
      { app_badge: 0, notification: { title: "A" } },
      { notification: { title: "A", app_badge: "7" } },
      { app_badge: 1, notification: { title: "A", app_badge: 2 } },
      { title: "A" }
    ])
      await stage.push(JSON.stringify(data), "/badges/")
    assert.deepEqual(await stage.evaluateIn("/badges.js", "badges"), [3, 0, 7, 1])
  })

  it("shows a push although the badge is refused", async () => {
    assert.equal((await stage.push('{"title":"A","app_badge":"x"}')).title, "A")
  })
})
