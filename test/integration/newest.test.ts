// EventLog.newest: the last messages of a filter, found backwards without an index.
import { Effect } from "effect"
import { assert, it } from "vitest"
import { provision } from "#nats/admin/provision.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"

const news = subjects.broadcast("test", channelToken("news"))
const rare = subjects.broadcast("test", channelToken("rare"))

/** Appends to both channels and to others of a kind that no filter here matches. */
const fill = Effect.fnUntraced(function* () {
  const log = yield* EventLog
  const sequences: Record<"news" | "rare", Array<number>> = { news: [], rare: [] }
  const append = Effect.fnUntraced(function* (i: number) {
    // Three of four messages are others; the channel `rare` is silent for long.
    const name = i % 4 === 0 ? (i % 400 === 0 ? "rare" : "news") : undefined
    const { seq } = yield* name === undefined
      ? log.append("log", { subject: subjects.rejected(1_000_000 + i), ...rejected })
      : log.append("log", { subject: name === "news" ? news : rare, ...broadcast })
    if (name !== undefined) sequences[name].push(seq)
  })
  yield* Effect.forEach(
    Array.from({ length: 2_000 }, (_, i) => i),
    append,
    { concurrency: 64 }
  )
  for (const list of Object.values(sequences)) list.sort((a, b) => b - a)
  return sequences
})

const broadcast = { type: "broadcast", body: {} } as const
const rejected = {
  type: "command.rejected",
  body: { command: 1, subject: "a", reason: "a", at: 1 }
} as const

it("finds the last messages of a filter, however dense or rare they are", async () => {
  await using nats = await startNats({ syncAlways: false })
  const program = Effect.gen(function* () {
    yield* provision(1)
    const log = yield* EventLog
    const read = (filter: string, limit: number, before = Number.MAX_SAFE_INTEGER) =>
      Effect.map(log.newest("log", filter, { before, limit }), (found) =>
        found.map(({ seq }) => seq)
      )
    assert.deepEqual(yield* read(filters.broadcasts, 10), [])
    const { news: dense, rare: few } = yield* fill()
    const all = [...dense, ...few].sort((a, b) => b - a)
    assert.deepEqual(yield* read(news, 10), dense.slice(0, 10))
    assert.deepEqual(yield* read(rare, 10), few)
    assert.deepEqual(yield* read(rare, 2), few.slice(0, 2))
    assert.deepEqual(yield* read(filters.broadcasts, 1_000), all)
    assert.deepEqual(yield* read(subjects.broadcast("test", channelToken("no")), 10), [])
    // Before sequences of other messages, and below the first one.
    for (const before of [dense[0]! + 1, dense[40]! + 1, dense[40]! - 1, 2, 1, 0])
      for (const limit of [1, 10])
        assert.deepEqual(
          yield* read(news, limit, before),
          dense.filter((seq) => seq < before).slice(0, limit)
        )
    // In pages, each before the last message of the one before.
    const pages: Array<number> = []
    while (pages.length < all.length)
      pages.push(...(yield* read(filters.broadcasts, 70, pages.at(-1))))
    assert.deepEqual(pages, all)
    assert.deepEqual(yield* read(filters.broadcasts, 70, pages.at(-1)), [])
    yield* Effect.promise(async () => {
      await using admin = await connectAdmin(nats.url)
      for (const seq of [...all.slice(0, 30), ...all.slice(-30)])
        await admin.jsm.streams.deleteMessage("BELLCAST_LOG", seq)
    })
    assert.deepEqual(yield* read(filters.broadcasts, 1_000), all.slice(30, -30))
    assert.deepEqual(yield* read(filters.broadcasts, 70, all[100]), all.slice(101, 171))
  })
  const services = natsLayer({ url: nats.url, name: "test" })
  await Effect.runPromise(program.pipe(Effect.provide(services)))
})
