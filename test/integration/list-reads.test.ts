// What a list of broadcasts reads: no more than it needs to decide, whoever published them and
// whoever asks.
import { headers } from "@nats-io/transport-node"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { publisherHeaders } from "#domain/broadcast.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken, directToken } from "#streams/tokens.ts"
import { call, finishedAt, publishAt, until } from "../support/client.ts"
import { connectAdmin, readsOf } from "../support/nats-admin.ts"
import { runCli } from "../support/run-cli.ts"
import { useService } from "../support/use-service.ts"
import { idOf } from "../support/users.ts"

const shared = useService({
  env: {
    BELLCAST_CHANNEL_WRITE_PRINCIPALS: idOf("publisher"),
    BELLCAST_USER_WRITE_PRINCIPALS: idOf("publisher"),
    BELLCAST_OPERATOR_PRINCIPALS: idOf("operator")
  }
})

/** For requests. The default of a second is short for a busy machine. */
const patient = { timeout: 10_000 }

const text = "x".repeat(3_900)
const locales = [..."abcdefghijklmnopqrst"].map((letter) => `${letter}a`)
/** Takes several messages of LOG: its variants do not fit into one. */
const large = {
  data: { n: 1 },
  data_by_locale: Object.fromEntries(locales.map((locale) => [locale, { text }]))
}

/** The sequences of LOG that are read one by one while somebody lists the broadcasts. */
const readBy = async (user: string) => {
  await using admin = await connectAdmin(shared.nats.url)
  let rows: ReadonlyArray<{ readonly id: string; readonly to: object }> = []
  const reads = await readsOf(admin, async () => {
    const { body, status } = await call(shared.service.url, "GET", "/broadcasts", user)
    assert.equal(status, 200)
    rows = body.data
  })
  assert.isNotEmpty(reads)
  const parts = reads.flatMap((read) => {
    const [, seq] = /MSG\.GET\.BELLCAST_LOG \{"seq":(\d+)\}/.exec(read) ?? []
    return seq === undefined ? [] : [Number(seq)]
  })
  return { rows, parts }
}

describe("a list of broadcasts", { timeout: 60_000 }, () => {
  it("reads no part that the message of a NATS client names", async () => {
    const { nats, service } = shared
    const to = { channels: ["secret"], users: [idOf("anna")] }
    const id = Number(await publishAt(service.url, "/broadcasts", { ...large, to }))
    const type = headers()
    type.set("Bellcast-Type", "direct/1")
    await using admin = await connectAdmin(nats.url)
    const subject = "bellcast.cmd.broadcast.billing.=direct"
    const parts = [id - 1, id - 2]
    const forged = (
      await admin.nc.request(subject, JSON.stringify({ parts }), { ...patient, headers: type })
    ).json<{ seq: number }>()
    const path = `/broadcasts/${forged.seq}`
    // Planner and worker read the broadcasts, too.
    for (const each of [path, `/broadcasts/${id}`]) await finishedAt(service.url, each, "operator")
    for (const user of ["operator", "publisher", "stranger"]) {
      const found = await readBy(user)
      assert.notIncludeMembers(found.parts, parts, user)
      const row = found.rows.find((each) => each.id === String(forged.seq))
      const nobody = { channels: [], users: 0, except_users: 0 }
      assert.deepEqual(row?.to, user === "operator" ? nobody : undefined)
    }
    const asked = await admin.nc.request(
      "bellcast.api.billing.broadcast",
      JSON.stringify({ broadcast: String(forged.seq) }),
      patient
    )
    assert.notInclude(asked.string(), "secret")
  })

  it("reads no variants to decide who may see them, and shows to whom they go", async () => {
    const { url } = shared.service
    const to = { channels: ["news"], users: [idOf("anna"), idOf("bert")] }
    const id = await publishAt(url, "/broadcasts", { ...large, to })
    await finishedAt(url, `/broadcasts/${id}`)
    for (const user of ["publisher", "operator", "stranger"]) {
      const { parts, rows } = await readBy(user)
      assert.isEmpty(parts, user)
      const row = rows.find((each) => each.id === id)
      const shown = { channels: ["news"], users: 2, except_users: 0 }
      assert.deepEqual(row?.to, user === "stranger" ? undefined : shown)
    }
  })

  it("waits for few lists of users without a right, whoever asked first", async () => {
    const { nats, service } = shared
    // The grant of one channel, of which he sees what he published himself.
    const granted = await runCli(["permissions", "grant", "own", idOf("granted")], {
      BELLCAST_NATS_URL: nats.url
    })
    assert.equal(granted.code, 0, granted.stderr)
    const publisher = publisherHeaders(idOf("publisher"))
    const subject = subjects.broadcast("rest", directToken)
    const body = { data: { n: 1 }, channels: [channelToken("a")] }
    await Effect.gen(function* () {
      const log = yield* EventLog
      const append = log.append("log", { subject, type: "direct", body, headers: publisher })
      yield* Effect.forEach(Array.from({ length: 60 }), () => append, { concurrency: 64 })
    }).pipe(Effect.provide(natsLayer({ url: nats.url, name: "test" })), Effect.runPromise)
    const own = { data: { n: 1 } }
    await until(
      () => call(service.url, "POST", "/channels/own", "granted", own),
      ({ status }) => status === 202
    )
    assert.lengthOf((await call(service.url, "GET", "/broadcasts", "granted")).body.data, 1)
    let [served, isOver] = [0, false]
    const list = (user: string) => call(service.url, "GET", "/broadcasts", user)
    const strangers = Array.from({ length: 12 }, async (_, i) => {
      for (; !isOver; served++) assert.isEmpty((await list(`stranger ${i}`)).body.data)
    })
    await until(
      async () => served,
      (count) => count >= 12
    )
    const servedMeanwhile = async (user: string, rows: number) => {
      const before = served
      assert.lengthOf((await list(user)).body.data, rows)
      return served - before
    }
    const meanwhile: Record<string, Array<number>> = { publisher: [], granted: [] }
    for (let i = 0; i < 5; i++) {
      meanwhile["publisher"]!.push(await servedMeanwhile("publisher", 50))
      meanwhile["granted"]!.push(await servedMeanwhile("granted", 1))
    }
    isOver = true
    await Promise.all(strangers)
    // First come, first served, each would wait for all of them.
    for (const [user, counts] of Object.entries(meanwhile))
      assert.isBelow(counts.toSorted((a, b) => a - b)[2]!, 8, `${user}: ${counts.join()}`)
  })
})
