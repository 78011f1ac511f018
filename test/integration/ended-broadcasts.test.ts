// A broadcast that has finished has no entry in the bucket of broadcasts, whatever brings one back.
import { assert, describe, it } from "vitest"
import { call, finished, finishedAt, join, publish, publishAt, until } from "../support/client.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"
import { idOf } from "../support/users.ts"

const stream = "KV_bellcast_broadcasts"
const prefix = "$KV.bellcast_broadcasts."

/** The broadcasts that have an entry. Connects anew: nats-server may have been killed. */
const entries = async (nats: TestNats): Promise<ReadonlyArray<string>> => {
  await using admin = await connectAdmin(nats.url)
  const { state } = await admin.jsm.streams.info(stream, { subjects_filter: ">" })
  return Object.keys(state.subjects ?? {})
    .map((subject) => subject.slice(prefix.length))
    .filter((key) => key !== "meta")
}
/** Also where nats-server has not recovered the stream yet. */
const entriesSoon = (nats: TestNats) => until(() => entries(nats).catch(() => undefined), isThere)
const isThere = <A>(found: A | undefined): found is A => found !== undefined
const noEntry = (nats: TestNats) =>
  until(
    () => entries(nats).catch(() => ["not read"]),
    (found) => found.length === 0
  )

/** A service with a browser that gets its push at the fifth attempt: its progress is replaced. */
const startSlow = async (nats: TestNats) => {
  const push = await startPushService()
  const service = await startService({ natsUrl: nats.url })
  const browser = push.subscribe({ script: [...Array(5).fill("503"), "201"] })
  await join([service.url], "news", [browser.subscription])
  const send = async () => {
    const broadcast = await publish(service.url, "news", { n: 1 })
    await until(
      () => entries(nats),
      (found) => found.includes(String(broadcast))
    )
    await finished(service.url, "news", broadcast, 30_000)
    await noEntry(nats)
    return String(broadcast)
  }
  return { push, service, send }
}

describe("the entry of a broadcast that has finished", { timeout: 90_000 }, () => {
  it("goes at the next start where a killed nats-server brought it back", async () => {
    await using nats = await startNats()
    const { push, send, service } = await startSlow(nats)
    await using _push = push
    const broadcast = await send()
    await service.stop()
    await nats.kill()
    await nats.restart()
    assert.deepEqual(await entriesSoon(nats), [broadcast])
    await using _again = await startService({ natsUrl: nats.url })
    await noEntry(nats)
  })

  it("goes while the service runs, once nats-server is back", async () => {
    await using nats = await startNats()
    const { push, send, service } = await startSlow(nats)
    await using _push = push
    await using _service = service
    await send()
    await nats.kill()
    await nats.restart()
    await until(
      async () => service.output(),
      (log) => /connection to NATS is back/.test(log)
    )
    await noEntry(nats)
  })

  it("goes where the broadcast was to a user alone who is erased", async () => {
    await using nats = await startNats()
    const push = await startPushService()
    await using _push = push
    const env = { BELLCAST_USER_WRITE_PRINCIPALS: idOf("publisher") }
    await using service = await startService({ natsUrl: nats.url, env })
    const browser = push.subscribe({ script: [...Array(5).fill("503"), "201"] })
    await call(service.url, "POST", "/subscriptions", "ann", { data: browser.subscription })
    const to = { users: [idOf("ann")] }
    const broadcast = await publishAt(service.url, "/broadcasts", { data: { n: 1 }, to })
    await until(
      () => entries(nats),
      (found) => found.includes(String(broadcast))
    )
    await finishedAt(service.url, `/broadcasts/${broadcast}`, "publisher", 30_000)
    await noEntry(nats)
    await call(service.url, "DELETE", "/", "ann")
    const messageOf = async () => {
      await using admin = await connectAdmin(nats.url)
      return await admin.jsm.streams
        .getMessage("BELLCAST_LOG", { seq: Number(broadcast) })
        .catch(() => null)
    }
    await until(messageOf, (message) => message === null)
    await service.stop()
    await nats.kill()
    await nats.restart()
    assert.deepEqual(await entriesSoon(nats), [String(broadcast)])
    await using _again = await startService({ natsUrl: nats.url })
    await noEntry(nats)
  })

  it("stays where the broadcast is under way", async () => {
    await using nats = await startNats()
    const { push, service } = await startSlow(nats)
    await using _push = push
    const browser = push.subscribe({ script: ["503"] })
    await join([service.url], "slow", [browser.subscription])
    const broadcast = await publish(service.url, "slow", { n: 1 })
    await until(
      () => entries(nats),
      (found) => found.includes(String(broadcast))
    )
    await service.stop()
    await using again = await startService({ natsUrl: nats.url })
    const other = await publish(again.url, "nobody", { n: 1 })
    await finished(again.url, "nobody", other)
    assert.deepEqual(await entries(nats), [String(broadcast)])
  })
})
