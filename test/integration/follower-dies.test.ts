// A message on which the fold of a follower dies each time is passed over after five deaths, with
// its rejection recorded, but for many in a row. Loops that follow LOG begin again after they died.
import { Effect, Fiber, Layer, Logger } from "effect"
import { assert, it } from "vitest"
import { fanoutLayer } from "#fanout/planner.ts"
import { provision } from "#nats/admin/provision.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { projectionLayer } from "#projection/projector.ts"
import { rebuild } from "#rebuild/rebuild.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { until } from "../support/client.ts"
import { administer } from "../support/history.ts"
import { userOf } from "../support/history-commands.ts"
import { startNats } from "../support/nats.ts"

const put = (n: number, id: string) =>
  ({
    subject: subjects.subscription(userOf(n)),
    type: "subscription.put",
    body: {
      user: `user ${n}`,
      id,
      data: { endpoint: `https://push.example/${id}`, keys: { auth: "a", p256dh: "b" } },
      lastModified: n + 1
    }
  }) as const

const layer = (url: string, written: Array<string>) => {
  const logger = Logger.make(
    ({ logLevel, message }) => void written.push(`${logLevel} ${String(message)}`)
  )
  return Layer.merge(natsLayer({ url, name: "test" }), Logger.layer([logger]))
}

it("a command on which the projector dies is rejected, and those behind it are applied", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats({ syncAlways: false })
  await using admin = await administer(nats.url)
  const written: Array<string> = []
  const entry = (n: number) => `$KV.bellcast_subscriptions.${userOf(n)}`
  const rejection = (seq: number) =>
    admin.jsm.streams.getMessage("BELLCAST_LOG", { last_by_subj: `bellcast.evt.rejected.${seq}` })
  const program = Effect.gen(function* () {
    yield* provision(1)
    // No list has this form: the fold of a put into it throws.
    yield* Effect.promise(() => admin.nc.request(entry(1), '{"v":1,"seq":0,"lastModified":0}'))
    const log = yield* EventLog
    yield* log.append("log", put(0, "before"))
    const { seq } = yield* log.append("log", put(1, "deadly"))
    yield* log.append("log", put(2, "behind"))
    const projector = yield* Effect.forkDetach(Layer.launch(projectionLayer))
    const entries = yield* Effect.promise(() => until(admin.entries, (all) => entry(2) in all))
    assert.include(entries[entry(0)], "before")
    assert.include(entries[entry(2)], "behind")
    const fact = (yield* Effect.promise(() => rejection(seq)))?.json<{ reason: string }>()
    assert.include(fact?.reason, "failed on this message 5 times")
    assert.lengthOf(
      written.filter((line) => line.startsWith("Error projector: a message failed 5 times")),
      1
    )
    yield* Fiber.interrupt(projector)
    yield* rebuild()
    const rebuilt = yield* Effect.promise(admin.entries)
    assert.notInclude(rebuilt[entry(1)], "deadly")
    assert.include(rebuilt[entry(2)], "behind")
  })
  await Effect.runPromise(program.pipe(Effect.provide(layer(nats.url, written))))
})

it("passes over three commands in a row, and no more, whatever the fault", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats({ syncAlways: false })
  await using admin = await administer(nats.url)
  const written: Array<string> = []
  const deadly = [1, 2, 3, 4, 5]
  const program = Effect.gen(function* () {
    yield* provision(1)
    const log = yield* EventLog
    for (const n of deadly) {
      const entry = `$KV.bellcast_subscriptions.${userOf(n)}`
      yield* Effect.promise(() => admin.nc.request(entry, '{"v":1,"seq":0,"lastModified":0}'))
    }
    for (const n of deadly) yield* log.append("log", put(n, "deadly"))
    const projector = yield* Effect.forkDetach(Layer.launch(projectionLayer))
    const isStuck = async () =>
      written.some((line) => line.includes("3 messages in a row were passed over"))
    yield* Effect.promise(() => until(isStuck, Boolean))
    const { state } = yield* Effect.promise(() =>
      admin.jsm.streams.info("BELLCAST_LOG", { subjects_filter: "bellcast.evt.rejected.*" })
    )
    assert.lengthOf(Object.keys(state.subjects ?? {}), 3)
    yield* Fiber.interrupt(projector)
  })
  await Effect.runPromise(program.pipe(Effect.provide(layer(nats.url, written))))
})

it("passes over any number of commands, as long as others between them are applied", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats({ syncAlways: false })
  await using admin = await administer(nats.url)
  const program = Effect.gen(function* () {
    yield* provision(1)
    const log = yield* EventLog
    const projector = yield* Effect.forkDetach(Layer.launch(projectionLayer))
    for (const n of [1, 2, 3, 4]) {
      const entry = `$KV.bellcast_subscriptions.${userOf(n)}`
      yield* Effect.promise(() => admin.nc.request(entry, '{"v":1,"seq":0,"lastModified":0}'))
      const { seq } = yield* log.append("log", put(n, "deadly"))
      const rejected = `bellcast.evt.rejected.${seq}`
      yield* Effect.promise(() =>
        until(
          () => Effect.runPromise(log.last("log", rejected)),
          (fact) => fact !== undefined
        )
      )
      yield* log.append("log", put(10 + n, "good"))
      yield* Effect.promise(() =>
        until(admin.entries, (all) => `$KV.bellcast_subscriptions.${userOf(10 + n)}` in all)
      )
    }
    yield* Fiber.interrupt(projector)
  })
  await Effect.runPromise(program.pipe(Effect.provide(layer(nats.url, []))))
})

it("a broadcast starts in time although reading the states and starting it died", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats({ syncAlways: false })
  await using admin = await administer(nats.url)
  const written: Array<string> = []
  const last = (broadcast: number) =>
    admin.jsm.streams.getMessage("BELLCAST_LOG", { last_by_subj: subjects.state(broadcast) })
  const program = Effect.gen(function* () {
    yield* provision(1)
    const log = yield* EventLog
    const died = new Set<string>()
    /** Dies the first time. */
    const once = (what: string) => {
      if (died.has(what)) return undefined
      died.add(what)
      return Effect.die(new Error(`a defect of ${what}`))
    }
    const replay: typeof log.replay = (...all) =>
      (all[1].includes(filters.states) ? once("states") : undefined) ?? log.replay(...all)
    const append = (...all: Parameters<typeof log.append>) =>
      (all[1].type === "broadcast.started" ? once("start") : undefined) ?? log.append(...all)
    const body = {
      ...{ broadcast: 1, channel: "news", run: 0, by: "test", at: 1 },
      schedule: { at: "2026-01-01T00:00:00Z" }
    }
    const subject = subjects.state(1)
    yield* log.append("log", { subject, type: "broadcast.scheduled", body })
    const planner = yield* Effect.forkDetach(
      Layer.launch(fanoutLayer).pipe(
        Effect.provideService(
          EventLog,
          EventLog.of({ ...log, append: append as typeof log.append, replay })
        )
      )
    )
    yield* Effect.promise(() =>
      until(
        () => last(1),
        (found) => found?.header.get("Bellcast-Type") === "broadcast.started/1"
      )
    )
    assert.deepEqual([...died].sort(), ["start", "states"])
    yield* Fiber.interrupt(planner)
  })
  await Effect.runPromise(program.pipe(Effect.provide(layer(nats.url, written))))
})
