// The pictures of README.md: the console in Chromium while it sends. They are stored where
// `PICTURES` is set; else the test says whether the page that they show is still there.
// Make them on a machine without other load: its pauses are dips of the plots.
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { call } from "#test/client.ts"
import { projectRoot, textOf } from "#test/documents.ts"
import { startPushService } from "#test/push-service.ts"
import { chromiumPath } from "../browser.ts"
import { addReaders, Desk } from "./desk.ts"
import { Stage } from "./stage.ts"

const folder = ".github/images"
const readers = 16
const isStored = process.env["PICTURES"] !== undefined

describe.skipIf(chromiumPath === undefined)("the pictures of README.md", () => {
  const stage = new Stage({ browser: "chromium", at: "" })

  it("show the console while it sends, in light and dark", { timeout: 120_000 }, async () => {
    await using push = await startPushService({ decrypt: false })
    const { url } = stage.service
    await addReaders(url, push, readers)
    const notification = {
      title: "Storm warning for the coast",
      body: "Gusts of up to 120 km/h from 18:00. Ferries stop at 16:00.",
      navigate: "https://example.org/storm",
      tag: "storm"
    }
    const published = await call(url, "POST", "/channels/news", "anna", {
      data: { web_push: 8030, notification },
      rate: 3
    })
    expect(published.status).toBe(202)
    const desk = new Desk(url, stage.page)
    await stage.page.setViewport({ width: 1160, height: 690 })
    await desk.open(`#/broadcast/${published.body.id}`, "anna")
    // The plots of a picture have a past.
    await desk.becomes(".sentence", isStored ? /^Accepted for 1\d\d of/ : /^Accepted for [1-9]/)
    for (const scheme of ["light", "dark"]) {
      await stage.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }])
      const picture = `${folder}/console-${scheme}.png`
      expect(textOf("README.md")).toContain(picture)
      await stage.page.waitForSelector(".plots path.delivered")
      const bytes = await stage.page.screenshot({ optimizeForSpeed: false })
      if (isStored) {
        mkdirSync(join(projectRoot, folder), { recursive: true })
        writeFileSync(join(projectRoot, picture), bytes)
      }
      expect(existsSync(join(projectRoot, picture)), picture).toBe(true)
    }
  })
})
