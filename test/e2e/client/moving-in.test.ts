// A site moves in, in a real Firefox: the subscription that its old worker made by the key of the
// old service is imported, gets a broadcast, and moves to the new worker and the new key.
import type { Page } from "puppeteer-core"
import { beforeAll, describe, expect, it } from "vitest"
import { channelsOf, finished, publish, registrationsSeen, until } from "#test/client.ts"
import { formerKeys, formerPair, importAll } from "#test/imports.ts"
import { firefoxPath } from "../browser.ts"
import { Stage } from "./stage.ts"

const shownBy = (page: Page, scope: string) =>
  page.evaluate(`(async () => {
    const registration = await navigator.serviceWorker.getRegistration("${scope}")
    const all = (await registration?.getNotifications()) ?? []
    return all.map(({ title }) => title)
  })()`) as Promise<ReadonlyArray<string>>

describe.skipIf(firefoxPath === undefined)("a site that moves in", () => {
  const stage = new Stage()
  beforeAll(async () => {
    await stage.service.kill()
    await stage.startService(formerKeys)
  })
  /** Publishes on a channel that is called like the user, so each try has its own. */
  const sent = async (title: string) => {
    const { service, user } = stage
    const counts = await finished(service.url, user, await publish(service.url, user, { title }))
    expect(counts).toMatchObject({ accepted: 1, delivered: 1 })
  }

  it("reaches its browsers by the old worker's address, and then by the new key, once each", {
    timeout: 120_000
  }, async () => {
    stage.files["/old/worker.js"] = "addEventListener('push', () => {})"
    const page = await stage.page()
    const old = await page.evaluate(`device.subscribeBy("/old/", "${formerPair.publicKey}")`)
    await importAll(stage.nats.url, [old], "--channel", stage.user)

    stage.files["/old/worker.js"] = 'importScripts("/worker.js")'
    await page.evaluate(`(async () => {
      const registration = await navigator.serviceWorker.getRegistration("/old/")
      const before = registration.active
      await registration.update()
      while (registration.active === before) await new Promise((go) => setTimeout(go, 50))
    })()`)
    await sent("By the old worker")
    await until(
      () => shownBy(page, "/old/"),
      ({ length }) => length > 0
    )
    expect(await shownBy(page, "/old/")).toEqual(["By the old worker"])

    await stage.connect(page, { adopt: true })
    await stage.expect(page, "on")
    expect(await channelsOf(stage.service.url, stage.user)).toEqual([stage.user])
    await until(
      () => registrationsSeen(stage.service.url, stage.user, stage.user),
      (count) => count === 1
    )
    expect(await page.evaluate("device.endpoints()")).toEqual([await stage.endpoint(page)])
    await sent("By the new one")
    await until(
      () => shownBy(page, "/"),
      ({ length }) => length > 0
    )
    expect(await shownBy(page, "/")).toEqual(["By the new one"])
    expect(await shownBy(page, "/old/")).toEqual(["By the old worker"])
  })
})
