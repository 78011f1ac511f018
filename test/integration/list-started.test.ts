// A broadcast that was accepted before the wanted time and started in it is found by its start.
import { Effect } from "effect"
import { assert, it } from "vitest"
import { listBroadcasts } from "#broadcasts/list.ts"
import { startHeader } from "#domain/broadcast-start.ts"
import { provision } from "#nats/admin/provision.ts"
import { Nats } from "#nats/connection/connection.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken, type UserToken } from "#streams/tokens.ts"
import { startNats } from "../support/nats.ts"
import { runCli } from "../support/run-cli.ts"

const at = new Date(Date.now() + 3_600_000).toISOString()
const [news, other] = [channelToken("news"), channelToken("other")]
const anna = "a".repeat(22) as UserToken

const add = Effect.fnUntraced(function* (channel: typeof news, headers: Record<string, string>) {
  const message = { subject: subjects.broadcast("test", channel), type: "broadcast" } as const
  return (yield* (yield* EventLog).append("log", { ...message, body: {}, headers })).seq
})

const start = Effect.fnUntraced(function* (broadcast: number, channel: typeof news) {
  const body = { broadcast, channel, run: 0, by: "schedule", at: 1, schedule: { at } }
  const type = "broadcast.started"
  yield* (yield* EventLog).append("log", { subject: subjects.state(broadcast), type, body })
})

/** The time at which a message was stored that follows all others by some milliseconds. */
const mark = Effect.gen(function* () {
  const log = yield* EventLog
  yield* Effect.sleep(20)
  const { seq } = yield* log.append("log", {
    subject: subjects.registration(news, anna),
    type: "registration.put",
    body: { user: "anna", at: 1 }
  })
  const { at: stored } = (yield* log.at("log", seq))!
  yield* Effect.sleep(20)
  return stored
})

/** `early` and `late` start in the span that the marks make, and `plain` is accepted in it. */
const fill = Effect.gen(function* () {
  yield* provision(1)
  const later = { [startHeader]: at }
  const before = yield* add(news, later)
  const early = yield* add(news, later)
  const elsewhere = yield* add(other, later)
  const never = yield* add(news, later)
  const late = yield* add(news, later)
  yield* start(before, news)
  const since = yield* mark
  yield* start(late, news)
  yield* start(elsewhere, other)
  const plain = yield* add(news, {})
  yield* start(early, news)
  const until = yield* mark
  yield* start(never, news)
  const last = yield* add(news, {})
  return { since, until, early, elsewhere, never, late, plain, last }
})

const list = (of: object) =>
  listBroadcasts({
    ...{ channel: news, limit: 100, behind: undefined, since: undefined, before: undefined },
    ...{ publisher: undefined, state: undefined },
    isShown: () => Effect.succeed(true),
    ...of
  }).pipe(
    Effect.map(({ next, rows }) => ({ next, ids: rows.map(({ origin }) => origin.stored.seq) }))
  )

it("lists broadcasts by acceptance or start, page by page", { timeout: 30_000 }, async () => {
  await using nats = await startNats()
  const program = Effect.gen(function* () {
    const { early, elsewhere, last, late, never, plain, since, until } = yield* fill
    const span = { since, before: until }
    const expected = [plain, late, early]
    assert.deepEqual(yield* list(span), { ids: expected, next: undefined })
    assert.deepEqual((yield* list({ since })).ids, [last, plain, late, never, early])
    const all = { ...span, channel: undefined }
    assert.deepEqual((yield* list(all)).ids, [plain, late, elsewhere, early])
    const paged: Array<number> = []
    let behind: number | undefined
    do {
      const page = yield* list({ ...span, limit: 1, behind })
      paged.push(...page.ids)
      behind = page.next
    } while (behind !== undefined)
    assert.deepEqual(paged, expected)
    assert.deepEqual((yield* list({ since: Date.now() + 60_000 })).ids, [])
    const { jsm } = yield* Nats
    yield* Effect.promise(() => jsm.streams.deleteMessage("BELLCAST_LOG", late))
    const first = yield* list({ ...span, readMax: 1, limit: 1 })
    const second = yield* list({ ...span, readMax: 1, limit: 1, behind: first.next })
    assert.deepEqual([first.ids, second.ids], [[plain], [early]])
    return { span, expected: [plain, early] }
  })
  const layer = natsLayer({ url: nats.url, name: "test" })
  const { expected, span } = await Effect.runPromise(program.pipe(Effect.provide(layer)))
  const times = [
    ...["--since", new Date(span.since).toISOString()],
    ...["--before", new Date(span.before).toISOString()]
  ]
  const verb = ["audit", "--user", anna, "--channel", "news", "--json", "--nats", nats.url]
  const { code, stderr, stdout } = await runCli([...verb, ...times])
  assert.deepEqual([code, stderr], [0, ""])
  const audited = stdout.trim().split("\n")
  assert.deepEqual(
    audited.map((line) => JSON.parse(line).broadcast),
    expected
  )
})
