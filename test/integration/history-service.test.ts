// A service whose log has lost its old messages: what people have works on, and who had left comes
// back as if for the first time.
import { assert, describe, it } from "vitest"
import { call, finished, publish, until } from "../support/client.ts"
import { administer, rebuildAt } from "../support/history.ts"
import { settingsOn } from "../support/imports.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { startService } from "../support/service.ts"
import { differencesAt, trimAt } from "../support/trimmed.ts"
import { idOf } from "../support/users.ts"

const roles = {
  BELLCAST_OPERATOR_PRINCIPALS: idOf("desk"),
  BELLCAST_USER_WRITE_PRINCIPALS: idOf("desk")
}

describe("a service with a trimmed log", () => {
  it("serves those who stayed, those who had left, and new broadcasts", async () => {
    await using nats = await startNats({ syncAlways: false })
    await using push = await startPushService()
    const start = () => startService({ natsUrl: nats.url, env: roles })
    let service = await start()
    const ask = (
      user: string | undefined,
      method: string,
      path: string,
      body?: object,
      more = {}
    ) => call(service.url, method, path, user, body, more)
    const subscribe = async (user: string, data: object) => {
      const answer = await ask(user, "POST", "/subscriptions", { data }, { prefer: "renewal" })
      assert.include([200, 201], answer.status)
      return answer.body
    }
    const join = async (user: string, channel = "news") =>
      assert.equal((await ask(user, "PUT", `/channels/${channel}/registration`)).status, 202)
    const leave = async (user: string, channel = "news") =>
      assert.equal((await ask(user, "DELETE", `/channels/${channel}/registration`)).status, 202)

    const anna = push.subscribe()
    const bert = push.subscribe()
    await subscribe("anna", { ...anna.subscription, label: "old" })
    const { renewal } = await subscribe("anna", { ...anna.subscription, label: "new" })
    await join("anna")
    for (const _ of [1, 2]) {
      await subscribe("bert", bert.subscription)
      await join("bert")
      await leave("bert")
      assert.equal((await ask("bert", "DELETE", "/subscriptions")).status, 200)
    }
    await join("carl")
    const old = await publish(service.url, "news", { n: 1 })
    await finished(service.url, "news", old)
    // The last command, up to which old messages are looked at.
    await join("dora")
    const shown = async () => ({
      list: (await ask("anna", "GET", "/subscriptions")).body,
      members: (await ask("desk", "GET", "/channels/news/members")).body,
      channel: (await ask("anna", "GET", "/channels/news")).body,
      person: (await ask("desk", "GET", `/users/${idOf("anna")}`)).body.data.devices.map(
        ({ last_delivered: _, ...device }: { last_delivered?: number }) => device
      )
    })
    const before = await until(shown, ({ channel }) => channel.data.push === 1)
    const exported = await runCli(["export", "-", "--terminal"], settingsOn(nats.url))
    await service.stop()

    await using admin = await administer(nats.url)
    await admin.jsm.streams.purge("BELLCAST_WORK")
    await rebuildAt(nats.url)
    const first = await admin.jsm.streams.info("BELLCAST_LOG")
    assert.isAtLeast(await trimAt(nats.url), 8)
    const left = await admin.jsm.streams.info("BELLCAST_LOG", { subjects_filter: ">" })
    assert.isBelow(left.state.messages, first.state.messages)
    const names = Object.keys(left.state.subjects ?? {})
    assert.notInclude(names, `bellcast.evt.finished.news.${old}`)
    assert.include(names, "bellcast.evt.summed.news")

    service = await start()
    assert.deepEqual(await shown(), before)
    assert.equal(
      (await runCli(["export", "-", "--terminal"], settingsOn(nats.url))).stdout,
      exported.stdout
    )
    assert.isEmpty(await differencesAt(nats.url))
    assert.equal((await ask(undefined, "GET", `/broadcasts/${old}`)).status, 401)
    assert.equal((await ask("desk", "GET", `/broadcasts/${old}`)).status, 404)

    // LOG has no message of them left, and yet their first writes succeed.
    await subscribe("bert", bert.subscription)
    await join("bert")
    await leave("carl")
    await join("carl")
    const other = push.subscribe()
    const renewed = await ask(undefined, "POST", "/subscriptions/replace", {
      renewal,
      data: other.subscription
    })
    assert.equal(renewed.status, 201)
    const next = await publish(service.url, "news", { n: 2 })
    assert.deepInclude(await finished(service.url, "news", next), { accepted: 2, delivered: 2 })
    const audit = await runCli(["audit", String(next)], settingsOn(nats.url))
    assert.include(audit.stdout, "delivered")
    assert.isEmpty(await differencesAt(nats.url))
    const now = await until(shown, ({ channel }) => channel.data.push === 3)
    await service.stop()
    await rebuildAt(nats.url)
    service = await start()
    assert.deepEqual(await shown(), now)
    await service.stop()
  }, 180_000)
})
