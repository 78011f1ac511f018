// A service worker without a login renews a subscription that the push service ended, once, and no
// process keeps the secret.
import { assert, describe, it } from "vitest"
import { renewalHash } from "#gateway/subscriptions/store.ts"
import { call, finished, publish, until } from "../support/client.ts"
import { administer, rebuildAt } from "../support/history.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { settled } from "../support/quiet.ts"
import { startService } from "../support/service.ts"

describe("a renewal without a login", { timeout: 60_000 }, () => {
  it("continues what a push service ended, once, also of two at the same moment", async () => {
    await using nats = await startNats({ syncAlways: false })
    await using push = await startPushService()
    const service = await startService({ natsUrl: nats.url })
    const list = async () => (await call(service.url, "GET", "/subscriptions", "ann")).body.data
    const { subscription } = push.subscribe({ script: ["410"] })
    const data = { ...subscription, label: "phone" }
    const prefer = { prefer: "renewal" }
    const { body } = await call(service.url, "POST", "/subscriptions", "ann", { data }, prefer)
    assert.equal((await call(service.url, "PUT", "/channels/news/registration", "ann")).status, 202)
    await finished(service.url, "news", await publish(service.url, "news", { n: 1 }))
    await until(list, (all) => all.length === 0)

    const browsers = [push.subscribe(), push.subscribe()]
    const replace = ({ subscription: data }: (typeof browsers)[number]) =>
      call(service.url, "POST", "/subscriptions/replace", undefined, {
        renewal: body.renewal,
        data
      })
    const answers = await Promise.all(browsers.map(replace))
    assert.sameMembers(
      answers.map(({ status }) => status),
      [201, 403]
    )
    const [stored] = await list()
    assert.deepInclude(stored, { label: "phone" })
    const second = await publish(service.url, "news", { n: 2 })
    assert.deepInclude(await finished(service.url, "news", second), { accepted: 1, delivered: 1 })

    await using admin = await administer(nats.url)
    const lists = async () =>
      Object.entries(await admin.entries()).filter(([key]) => key.includes("_subscriptions."))
    // A response does not wait until the owner of the endpoint is written.
    const before = await settled(lists, 500)
    await service.stop()
    const secrets = [body.renewal, ...answers.flatMap((each) => each.body.renewal ?? [])]
    assert.lengthOf(secrets, 2)
    const { state } = await admin.jsm.streams.info("BELLCAST_LOG")
    const texts: Array<string> = []
    for (let seq = 1; seq <= state.last_seq; seq++)
      texts.push((await admin.jsm.streams.getMessage("BELLCAST_LOG", { seq }))?.string() ?? "")
    for (const secret of secrets) assert.notInclude(texts.join(), secret.split(".")[2])
    // The command says which secret was spent, by its hash.
    const spent = texts.flatMap((text) => (text === "" ? [] : (JSON.parse(text).replaces ?? [])))
    assert.deepEqual(
      spent.map(({ renewal }) => renewal),
      [renewalHash(body.renewal)]
    )
    for (const secret of secrets) {
      assert.notInclude(JSON.stringify(before), secret.split(".")[2])
      assert.notInclude(service.output(), secret)
    }
    await rebuildAt(nats.url)
    assert.deepEqual(await lists(), before)
  })
})
