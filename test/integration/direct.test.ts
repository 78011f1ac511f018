// Broadcasts to several channels and to users: each browser gets one push, whatever the overlap.
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { natsLayer } from "#nats/layer.ts"
import type { Append } from "#nats/stream/append.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken, directToken } from "#streams/tokens.ts"
import { auditsOf } from "../support/audit.ts"
import { call, finishedAt, join, publishAt, until } from "../support/client.ts"
import { reply } from "../support/push-script.ts"
import { startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { useService } from "../support/use-service.ts"
import type { UserAgent } from "../support/user-agent.ts"
import { idOf, tokenOf } from "../support/users.ts"

/** Each case has channels and users of its own. */
const shared = useService({ env: { BELLCAST_USER_WRITE_PRINCIPALS: idOf("publisher") } })

const register = async (method: "PUT" | "DELETE", user: string, ...channels: Array<string>) => {
  const { url } = shared.service
  for (const channel of channels)
    assert.equal((await call(url, method, `/channels/${channel}/registration`, user)).status, 202)
}

/** A user with these browsers on these channels. */
const enter = async (
  name: string,
  agents: ReadonlyArray<UserAgent>,
  ...channels: Array<string>
) => {
  for (const { subscription: data } of agents) {
    const answer = await call(shared.service.url, "POST", "/subscriptions", name, { data })
    assert.equal(answer.status, 201)
  }
  await register("PUT", name, ...channels)
}

const send = (body: unknown, headers: Record<string, string> = {}) =>
  call(shared.service.url, "POST", "/broadcasts", "publisher", body, headers)

const state = (id: string) => call(shared.service.url, "GET", `/broadcasts/${id}`, "publisher")

const log = <A>(effect: (log: EventLog["Service"]) => Effect.Effect<A, unknown>) =>
  Effect.flatMap(EventLog, effect).pipe(
    Effect.provide(natsLayer({ url: shared.nats.url, name: "test" })),
    Effect.runPromise
  )

const published = (body: unknown, headers?: Record<string, string>) =>
  publishAt(shared.service.url, "/broadcasts", body, headers)

const finished = (id: string) => finishedAt(shared.service.url, `/broadcasts/${id}`)

const textsOf = (agents: ReadonlyArray<UserAgent>) =>
  agents.map(({ received }) => received.map(({ text }) => text))

/** The kind of each command in LOG, in order. */
const kindsOf = () =>
  log((door) => {
    const found: Array<string> = []
    return door
      .replay("log", ["bellcast.cmd.>"], ({ subject }) => void found.push(subject.split(".")[2]!))
      .pipe(Effect.as(found))
  })

const append = <T extends "direct" | "direct.part" | "broadcast">(
  message: Append<T> & { readonly expect?: never }
) => log((door) => Effect.map(door.append("log", message), ({ seq }) => seq))

describe("a broadcast to several channels and to users", { timeout: 90_000 }, () => {
  it("reaches each browser once, whatever the overlap, and nobody who is excepted", async () => {
    await using push = await startPushService()
    const browser = () => push.subscribe()
    const [a, b, c, d] = [browser(), browser(), browser(), browser()]
    const excepted = [browser(), browser()] as const
    await enter("anna", [a, b], "news", "sport")
    await enter("bert", [c], "news", "sport")
    await enter("cleo", [d])
    await enter("dora", [excepted[0]], "news")
    await enter("frank", [excepted[1]], "other")
    const to = {
      channels: ["news", "sport", "news", "nobody's"],
      users: ["anna", "cleo", "emil", "anna"].map(idOf),
      except_users: [idOf("dora"), idOf("frank")]
    }
    const kinds = await kindsOf()
    const dry = await send({ data: { n: 1 }, to, dry_run: true })
    const counted = { people: 3, browsers: 4, estimated: false, without_subscription: 1 }
    const reach = { ...counted, unjoined_channels: ["nobody's"] }
    const warnings = ["Nobody is registered to the channel nobody's"]
    assert.deepEqual([dry.status, dry.body], [200, { data: reach, warnings }])
    assert.deepEqual(await kindsOf(), kinds)

    const id = await published({ data: { n: 1 }, to }, { TTL: "60", Urgency: "high" })
    const counts = { accepted: 4, delivered: 4, gone: 0, without_subscription: 1, shards: 1 }
    assert.deepInclude(await finished(id), counts)
    const text = '{"n":1}'
    assert.deepEqual(textsOf([a, b, c, d]), [[text], [text], [text], [text]])
    assert.deepEqual(textsOf(excepted), [[], []])
    assert.equal(d.received[0]!.headers["urgency"], "high")
    const [audit] = await auditsOf(shared.nats.url, [id])
    assert.deepInclude(audit, {
      channels: ["news", "nobody's", "sport"],
      users: 3,
      except: 2,
      publisher: idOf("publisher")
    })
    assert.lengthOf(audit!.pushes, 4)
    const { stdout } = await runCli(["audit", id, "--nats", shared.nats.url])
    assert.match(stdout, /to 3 channels \(news, nobody's, sport\) and 3 users, except 2, accepted/)
    // A broadcast to recipients counts for no channel.
    const { body } = await call(shared.service.url, "GET", "/channels/news", "anna")
    assert.deepInclude(body.data, { registrations: 3, push: 0 })
  })

  it("goes on to those who are named, or still registered on one of its channels", async () => {
    await using push = await startPushService()
    let isAway = true
    const away = reply(503, () => ({ "retry-after": "2" }))
    const [named, one, both] = [push.subscribe(), push.subscribe(), push.subscribe()]
    for (const agent of [named, one, both]) agent.answerBy((next) => (isAway ? away : next()))
    const dead = push.subscribe({ script: ["400", "201"] })
    await enter("named", [named])
    await enter("one", [one], "music", "films")
    await enter("both", [both], "music", "films")
    await enter("dead", [dead], "music")
    const to = { channels: ["music", "films"], users: [idOf("named")] }
    const id = await published({ data: { n: 1 }, to })
    await until(
      () => state(id),
      ({ body }) => body.data.retrying === 3
    )
    await register("DELETE", "one", "films")
    await register("DELETE", "both", "music", "films")
    // An attempt to a user who left may have begun before.
    await until(
      () => state(id),
      ({ body }) => body.data.gone === 1
    )
    isAway = false
    const counts = { accepted: 4, delivered: 2, gone: 1, dead: 1 }
    assert.deepInclude(await finished(id), counts)
    assert.deepEqual(textsOf([named, one, both]), [['{"n":1}'], ['{"n":1}'], []])

    const redrive = await runCli(["redrive", id, "--nats", shared.nats.url])
    assert.equal(redrive.code, 0, redrive.stderr)
    const next = / as broadcast (\d+)/.exec(redrive.stdout)![1]!
    assert.deepInclude(await finished(next), { accepted: 1, delivered: 1 })
    assert.lengthOf(named.received, 1)
    assert.lengthOf(dead.received, 1)
  })

  it("goes to as many as there may be, cut into messages that stand before it", async () => {
    await using push = await startPushService()
    const before = (await kindsOf()).length
    const agents = Array.from({ length: 40 }, () => push.subscribe())
    await join(
      [shared.service.url],
      "large",
      agents.map(({ subscription }) => subscription)
    )
    const people = (from: number, count: number) =>
      Array.from({ length: count }, (_, i) => idOf(`user${from + i}`))
    const channels = Array.from({ length: 99 }, (_, i) => `${"ü".repeat(120)}${i}`)
    const to = {
      channels: [...channels, "large"],
      users: people(20, 1_000),
      except_users: people(-990, 1_000)
    }
    const headers = { "Idempotency-Key": "once" }
    const [id, same] = [
      await published({ data: { n: 1 }, to }, headers),
      await published({ to: { ...to, users: to.users.toReversed() }, data: { n: 1 } }, headers)
    ]
    assert.equal(same, id)
    const state = await finished(id)
    assert.deepInclude(state, { accepted: 30, delivered: 30, without_subscription: 980 })
    assert.equal(push.counts.duplicates, 0)
    const added = (await kindsOf()).slice(before)
    const commands = added.filter((kind) => ["part", "broadcast"].includes(kind))
    assert.equal(commands.lastIndexOf("part"), commands.length - 2)
    assert.isAbove(commands.length, 5)
    const kinds = await kindsOf()
    for (const other of [
      { ...to, users: to.users.slice(1) },
      { ...to, channels: to.channels.slice(1) }
    ]) {
      const refused = await send({ data: { n: 1 }, to: other }, headers)
      assert.deepEqual([refused.status, refused.body.details[0].name], [400, "Idempotency-Key"])
    }
    const parts = (list: ReadonlyArray<string>) => list.filter((kind) => kind === "part").length
    assert.equal(parts(await kindsOf()), parts(kinds))
  })

  it("is rejected when a part of it is missing, or when Bellcast did not publish it", async () => {
    await using push = await startPushService()
    const agent = push.subscribe()
    await enter("ina", [agent], "weather")
    const users = [tokenOf("ina")]
    const direct = (source: string, body: Append<"direct">["body"], channel = directToken) =>
      append({ subject: subjects.broadcast(source, channel), type: "direct", body })
    // A gateway that is killed before the broadcast leaves parts alone.
    const part = await append({
      subject: subjects.part,
      type: "direct.part",
      body: { users }
    })
    const lacks = "BELLCAST_LOG lacks a part of the broadcast before it"
    const weather = channelToken("weather")
    const foreign = await append({
      subject: subjects.broadcast("billing", weather),
      type: "direct.part",
      body: { users }
    })
    const rejected: ReadonlyArray<readonly [seq: number, reason: RegExp | string]> = [
      [await direct("rest", { parts: [part, part + 2] }), lacks],
      [await direct("rest", { parts: [part - 1] }), lacks],
      [await direct("rest", { parts: [1_000_000] }), lacks],
      [await direct("rest", { parts: [foreign] }), lacks],
      [await direct("rest", { parts: [part, part] }), /not a direct\/1/],
      [
        await direct("rest", { parts: Array.from({ length: 17 }, (_, i) => i + 1) }),
        /not a direct/
      ],
      [await direct("billing", { parts: [part] }), /only Bellcast itself/],
      [await direct("billing", { users }), /only Bellcast itself/],
      [await direct("billing", { users }, weather), /direct is no broadcast on this subject/],
      [
        await append({
          subject: subjects.broadcast("rest", directToken),
          type: "broadcast",
          body: {}
        }),
        /broadcast is no broadcast on this subject/
      ]
    ]
    const good = await direct("rest", { parts: [part], data: { good: 1 } })
    assert.deepInclude(await finished(String(good)), { accepted: 1, delivered: 1 })
    for (const [seq, reason] of rejected) {
      const [audit] = await auditsOf(shared.nats.url, [String(seq)])
      assert.match(audit!.rejected ?? "", new RegExp(reason))
      if (audit!.publisher === "nats:billing") assert.isUndefined(audit!.users, "names nobody")
    }
    assert.equal((await state(String(part))).status, 404)
    assert.deepEqual(textsOf([agent]), [['{"good":1}']])
  })
})
