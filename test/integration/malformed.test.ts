// Messages whose headers are none, written to NATS byte by byte by somebody who may publish there.
// Each is rejected with a recorded reason, or answered with an error. No other message suffers.
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { assert, it } from "vitest"
import { call, finished, join, publish, until } from "../support/client.ts"
import { connectRaw, malformedBlocks, oddBlocks } from "../support/malformed.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"
import { useShared } from "../support/use-service.ts"

const shared = useShared(async (opened) => {
  const nats = opened.use(await startNats({ syncAlways: false }))
  const push = opened.use(await startPushService())
  const env = { BELLCAST_AUTH_POLICIES: "basicauth" }
  const service = opened.use(await startService({ natsUrl: nats.url, env }))
  const raw = opened.use(await connectRaw(nats.url))
  const nc = await connect({ servers: nats.url })
  opened.defer(() => nc.close())
  await join([service.url], "news", [push.subscribe().subscription])
  return { nats, push, service, raw, nc, jsm: await jetstreamManager(nc) }
})

const blocks = Object.entries(malformedBlocks)
const body = JSON.stringify({ data: { n: 1 } })

/** The lines of the log from a place on: text that is no line of the log is none of it. */
const linesFrom = (place: number) =>
  shared.service
    .output()
    .slice(place)
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as { readonly level: number; readonly msg: string })

/** The lines that warn, from a place on, once a broadcast after it is delivered. */
const warningsFrom = async (place: number) => {
  const broadcast = await publish(shared.service.url, "news", { still: "here" })
  const counts = await finished(shared.service.url, "news", broadcast)
  assert.deepInclude(counts, { accepted: 1, delivered: 1 })
  return linesFrom(place).filter(({ level }) => level >= 40)
}

/** Reasons of the rejections in LOG, by the subject of what was rejected. */
const reasonsOn = async (subject: string, count: number) =>
  until(
    async () => {
      const { state } = await shared.jsm.streams.info("BELLCAST_LOG", {
        subjects_filter: "bellcast.evt.rejected.*"
      })
      const found = Object.keys(state.subjects ?? {}).map((last_by_subj) =>
        shared.jsm.streams.getMessage("BELLCAST_LOG", { last_by_subj })
      )
      return (await Promise.all(found))
        .map((stored) => stored!.json<{ readonly subject: string; readonly reason: string }>())
        .filter((fact) => fact.subject === subject)
        .map(({ reason }) => reason)
    },
    (reasons) => reasons.length >= count
  )

it("stored as broadcasts are rejected; one line says so, and the next one is sent", async () => {
  const { raw, service } = shared
  const place = service.output().length
  const subject = "bellcast.cmd.broadcast.billing.first"
  // More than a planner has in hand at a time.
  const count = 160
  for (let i = 0; i < count; i++) raw.send(subject, blocks[i % blocks.length]![1], body)
  await raw.flush()
  const warnings = await warningsFrom(place)
  assert.deepEqual(await reasonsOn(subject, count), Array(count).fill("malformed headers"))
  assert.deepEqual(
    warnings.map(({ msg }) => msg),
    ["broadcasts were rejected"]
  )
})

it("stored as broadcasts leave the lists of broadcasts as they are", async () => {
  const { raw, service } = shared
  for (const [, block] of blocks) raw.send("bellcast.cmd.broadcast.billing.lists", block, body)
  await raw.flush()
  const broadcast = await publish(service.url, "lists", { n: 1 })
  const { body: list, status } = await call(service.url, "GET", "/broadcasts", "publisher")
  assert.equal(status, 200)
  assert.include(
    list.data.map(({ id }: { readonly id: number }) => String(id)),
    broadcast
  )
})

it.each(blocks)(
  "with %s, a request gets an error, and the next one its response",
  async (_, block) => {
    const { nc, raw, service } = shared
    const place = service.output().length
    const inbox = `_INBOX.malformed.${Math.random().toString(36).slice(2)}`
    const responses = nc.subscribe(inbox, { max: 1, timeout: 15_000 })
    await nc.flush()
    raw.send("bellcast.api.billing.broadcasts", block, "{}", inbox)
    for await (const msg of responses) {
      assert.equal(msg.headers?.get("Nats-Service-Error-Code"), "400")
      assert.deepInclude(msg.json<object>(), { code: 400, errno: 107 })
      assert.deepEqual(msg.json<{ readonly details: unknown }>().details, [
        { location: "header", name: null, description: "Malformed headers" }
      ])
    }
    assert.deepEqual(await warningsFrom(place), [])
  }
)

it("on subjects that are not stored are read past", async () => {
  const { raw, service } = shared
  const place = service.output().length
  for (const [, block] of [...blocks, ...Object.entries(oddBlocks)])
    for (const subject of ["applied", "applied.get", "push-service"].map(
      (name) => `bellcast.sys.${name}`
    ))
      for (const reply of ["_INBOX.a", "bellcast.cmd.broadcast.rest.news"])
        raw.send(subject, block, '{"log":', reply)
  for (const [, block] of blocks) raw.send("$SRV.PING", block, "", "_INBOX.a")
  await raw.flush()
  assert.deepEqual(await warningsFrom(place), [])
})

it("asking for a response on a subject that is stored get none", async () => {
  const { jsm, nc } = shared
  const replies = ["bellcast.evt.rejected.9000000", "$KV.bellcast_permissions.news.publishers"]
  const asked = ["bellcast.sys.applied.get", "bellcast.api.billing.broadcasts", "$SRV.PING"]
  for (const subject of asked) {
    for (const reply of replies) nc.publish(subject, "{}", { reply })
    // Responses to one connection come in the order of its requests.
    await nc.request(subject, "{}", { timeout: 10_000 })
  }
  for (const [stream, last_by_subj] of [
    ["BELLCAST_LOG", replies[0]!],
    ["KV_bellcast_permissions", replies[1]!]
  ] as const)
    assert.isNull(await jsm.streams.getMessage(stream, { last_by_subj }), last_by_subj)
})

/** A name of 15 letters in all its spellings. */
const spellingsBlock = (): string => {
  const name = "x-authentication"
  const letters = [...name].flatMap((letter, i) => (letter === "-" ? [] : [i]))
  const lines = Array.from({ length: 2 ** letters.length }, (_, n) => {
    const upper = new Set(letters.filter((_, bit) => (n >> bit) & 1))
    return [...name].map((letter, i) => (upper.has(i) ? letter.toUpperCase() : letter)).join("")
  })
  return `NATS/1.0\r\n${lines.map((line) => `${line}:\r\n`).join("")}\r\n`
}

it("requests with a header in 32,768 spellings hold up no other", async () => {
  const { nc, raw, service } = shared
  const block = spellingsBlock()
  for (let i = 0; i < 8; i++) {
    raw.send("bellcast.api.billing.broadcasts", block, "{}", "_INBOX.spellings")
    await raw.flush()
  }
  await nc.request("bellcast.api.billing.broadcasts", "{}", { timeout: 5_000 })
  assert.equal((await call(service.url, "GET", "/__lbheartbeat__")).status, 200)
})
