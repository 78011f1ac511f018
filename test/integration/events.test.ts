// Streams of events: what becomes of a broadcast, while it runs.
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { broadcastPath, changeState, patchState } from "../support/broadcast-states.ts"
import { call, finishedAt, join, publishAt, until } from "../support/client.ts"
import { type Events, follow } from "../support/events.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { createToken, runCli } from "../support/run-cli.ts"
import { startService } from "../support/service.ts"
import { inHours, inMillis } from "../support/times.ts"
import { idOf } from "../support/users.ts"

const statesOf = ({ events }: Events): ReadonlyArray<string> =>
  events.map(({ data }) => data.state).filter((state, i, all) => state !== all[i - 1])

const when = (stream: Events, accept: (stream: Events) => boolean, millis?: number) =>
  until(async () => stream, accept, millis)

interface Stage {
  readonly url: string
  readonly push: PushService
}

let channels = 0

/**
 * A broadcast to some browsers on a channel of its own, and a function that opens its stream, as a
 * publisher of its own.
 */
const broadcast = async (
  { push, url }: Stage,
  script: ReadonlyArray<string>,
  browsers = 1,
  body: object = {}
) => {
  const channel = `c${++channels}`
  const agents = Array.from({ length: browsers }, () => push.subscribe({ script: [...script] }))
  const subscriptions = agents.map(({ subscription }) => subscription)
  await join([url], channel, subscriptions, 24, `${channel}-user`)
  const id = await publishAt(url, `/channels/${channel}`, { data: { n: 1 }, ...body })
  const open = (lastEventId?: string) =>
    follow(`${url}${broadcastPath(id)}/events`, `reader-${channel}`, lastEventId)
  return { channel, id, open }
}

/** A push that fails, and is not tried again soon. */
const retrying = ["503 retry-after 600"]

const start = async () => {
  const stack = new AsyncDisposableStack()
  const nats = stack.use(await startNats())
  const push = stack.use(await startPushService())
  const env = { BELLCAST_AUTH_POLICIES: "token basicauth" }
  const service = stack.use(await startService({ natsUrl: nats.url, env }))
  return {
    nats,
    push,
    service,
    url: service.url,
    [Symbol.asyncDispose]: () => stack.disposeAsync()
  }
}

// At once: they wait more than they work.
describe.concurrent("a stream of events", { timeout: 60_000 }, () => {
  let stage: Awaited<ReturnType<typeof start>>
  beforeAll(async () => {
    stage = await start()
  })
  afterAll(() => stage[Symbol.asyncDispose]())

  it("shows each state with its counts, from running to finished, and ends", async () => {
    const { id, open } = await broadcast(stage, ["slow 8000"], 20)
    const stream = await open()
    assert.equal(stream.status, 200)
    await when(stream, ({ events }) => events.length > 0)
    for (const state of ["paused", "running"]) {
      await changeState(stage.url, id, state)
      await when(stream, ({ events }) => events.at(-1)?.data.state === state)
    }
    await stream.ended
    assert.deepEqual(statesOf(stream), ["running", "paused", "running", "finished"])
    const { data: _, ...shown } = await finishedAt(stage.url, broadcastPath(id))
    assert.deepEqual(stream.events.at(-1)?.data, shown)
    assert.deepInclude(shown, { accepted: 20, delivered: 20 })
    for (const [i, { at, data }] of stream.events.entries()) {
      const { cancelled, dead, delivered, expired, gone, retrying, waiting } = data
      const sum = delivered + waiting + retrying + expired + dead + gone + cancelled
      assert.equal(data.accepted, sum)
      // An event that arrives late makes the time shorter. events-gap.test.ts measures one gap.
      if (i >= 4) assert.isAtLeast(at - stream.events[i - 4]!.at, 700)
    }
    assert.equal(new Set(stream.events.map((each) => each.id)).size, stream.events.length)
    // A browser that comes back has seen the end.
    assert.equal((await open(stream.events.at(-1)!.id)).status, 204)
    const late = await open("of another state")
    await late.ended
    assert.deepEqual(
      late.events.map(({ data }) => data),
      [shown]
    )
  })

  it("ends with the final counts of a cancelled broadcast", async () => {
    const { id, open } = await broadcast(stage, retrying, 3)
    const stream = await open()
    await when(stream, ({ events }) => events.at(-1)?.data.retrying === 3)
    await changeState(stage.url, id, "cancelled")
    await stream.ended
    const last = stream.events.at(-1)?.data
    assert.deepInclude(last, { state: "cancelled", finished: true, cancelled: 3, retrying: 0 })
  })

  it("follows scheduled broadcasts to their end, or to their cancellation", async () => {
    const startsIn = (millis: number) => ({ at: inMillis(millis) })
    const soon = await broadcast(stage, ["201"], 1, startsIn(12_000))
    const never = await broadcast(stage, ["201"], 1, startsIn(600_000))
    const [sent, stopped] = await Promise.all([soon.open(), never.open()])
    await when(stopped, ({ events }) => events.length > 0)
    await changeState(stage.url, never.id, "cancelled")
    await Promise.all([sent.ended, stopped.ended])
    assert.deepEqual([statesOf(sent)[0], statesOf(sent).at(-1)], ["scheduled", "finished"])
    assert.deepInclude(sent.events.at(-1)?.data, { accepted: 1, delivered: 1 })
    assert.deepEqual(statesOf(stopped), ["scheduled", "cancelled"])
    assert.deepInclude(stopped.events.at(-1)?.data, { accepted: 0, finished: true })
  })

  it("reads the recipients of a broadcast once", async () => {
    const tags = ["da", "de", "el", "en", "es", "fi", "fr", "it", "nl", "pl"]
    // More than a message of LOG has.
    const data_by_locale = Object.fromEntries(tags.map((tag) => [tag, { text: "x".repeat(3_800) }]))
    const to = { channels: ["parts"] }
    const id = await publishAt(stage.url, "/broadcasts", { at: inHours(1), data_by_locale, to })
    const stream = await follow(`${stage.url}${broadcastPath(id)}/events`)
    await when(stream, ({ events }) => events.length > 0)
    await using admin = await connectAdmin(stage.nats.url)
    const { streams } = admin.jsm
    const part = await streams.getMessage("BELLCAST_LOG", {
      last_by_subj: "bellcast.cmd.part.rest"
    })
    await streams.deleteMessage("BELLCAST_LOG", part!.seq)
    await changeState(stage.url, id, "cancelled")
    await stream.ended
    assert.isAbove(stream.events.length, 1)
    for (const { data } of stream.events) assert.deepEqual(data.to.channels, ["parts"])
  })

  it("sends no event that the client has, and a comment every 15 s", async () => {
    const { open } = await broadcast(stage, retrying)
    const first = await open()
    await when(first, ({ events }) => events.at(-1)?.data.retrying === 1)
    const second = await open(first.events.at(-1)!.id)
    await when(second, ({ comments }) => comments > 0, 20_000)
    assert.deepEqual([second.status, second.events], [200, []])
    for (const stream of [first, second]) stream.close()
  })

  it("is one of four of its user, until it ends", async () => {
    const { channel, id, open } = await broadcast(stage, retrying)
    const streams = await Promise.all(Array.from({ length: 4 }, () => open()))
    for (const stream of streams) await when(stream, ({ events }) => events.length > 0)
    const fifth = await open()
    assert.equal(fifth.status, 429)
    assert.match(fifth.headers.get("retry-after") ?? "", /^\d+$/)
    const other = await follow(`${stage.url}${broadcastPath(id)}/events`, `other-${channel}`)
    assert.equal(other.status, 200)
    streams[0]!.close()
    const next = await until(
      () => open(),
      ({ status }) => status === 200,
      5_000
    )
    for (const stream of [next, other, ...streams]) stream.close()
  })

  it("ends within a minute when its user may not publish on the channel any more", {
    timeout: 120_000
  }, async () => {
    const { channel, id } = await broadcast(stage, retrying)
    const natsUrl = stage.nats.url
    const env = { BELLCAST_CHANNEL_WRITE_PRINCIPALS: "" }
    await using strict = await startService({ natsUrl, roles: "gateway", env })
    const permit = async (verb: string) => {
      const args = ["permissions", verb, channel, idOf("editor"), "--nats", natsUrl]
      const { code, stderr } = await runCli(args)
      assert.equal(code, 0, stderr)
    }
    await permit("grant")
    const url = `${strict.url}${broadcastPath(id)}/events`
    const stream = await until(
      () => follow(url, "editor"),
      ({ status }) => status === 200
    )
    await permit("revoke")
    const revokedAt = performance.now()
    await stream.ended
    assert.isBelow(stream.endedAt! - revokedAt, 75_000)
    assert.equal((await follow(url, "editor")).status, 404)
  })

  it("ends within seconds when its token is revoked", async () => {
    const { channel, id } = await broadcast(stage, retrying)
    const natsUrl = stage.nats.url
    const { token } = await createToken(natsUrl, channel, "--channel", channel)
    const stream = await follow(`${stage.url}/channels/${channel}${broadcastPath(id)}/events`, {
      authorization: `Bearer ${token}`
    })
    await when(stream, ({ events }) => events.length > 0)
    assert.equal(stream.endedAt, undefined)
    const revoked = await runCli(["token", "revoke", channel, "--nats", natsUrl])
    const revokedAt = performance.now()
    assert.equal(revoked.code, 0, revoked.stderr)
    await stream.ended
    // Tokens are checked each second, other rights each minute.
    assert.isBelow(stream.endedAt! - revokedAt, 10_000)
  })
})

it("goes on when NATS was away, and does not hold up the end of its process", {
  timeout: 60_000
}, async () => {
  await using stage = await start()
  const { nats, service } = stage
  const { id, open } = await broadcast(stage, retrying)
  const stream = await open()
  await when(stream, ({ events }) => events.at(-1)?.data.retrying === 1)
  const closed = await open()
  closed.close()
  await nats.kill()
  await until(
    async () => service.output(),
    (output) => output.includes("the connection to NATS is lost")
  )
  await nats.restart()
  await until(
    () => patchState(service.url, id, "paused"),
    ({ status }) => status === 200
  )
  await when(stream, ({ events }) => events.at(-1)?.data.state === "paused", 20_000)
  assert.equal(stream.endedAt, undefined)
  const metrics = await call(service.url, "GET", "/__metrics__")
  assert.match(metrics.body, /^bellcast_event_streams 1$/m)
  const began = performance.now()
  assert.equal(await service.stop(), 0)
  await stream.ended
  // The bound on the end of a process is 20 s.
  assert.isBelow(performance.now() - began, 10_000)
})
