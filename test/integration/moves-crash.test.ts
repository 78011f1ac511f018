// The owner of a browser does not depend on where a projector dies: the next run decides the same,
// and so does a rebuild. Nor do the registrations of a stand-in, which end with its move.
import { Deferred, Effect, Fiber, Layer } from "effect"
import { describe, it } from "vitest"
import { endpointHash } from "#domain/subscription/owners.ts"
import { provision } from "#nats/admin/provision.ts"
import { unavailable } from "#nats/connection/errors.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { projectionLayer } from "#projection/projector.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { administer, folded, foldingLayer } from "../support/history.ts"
import { userOf } from "../support/history-commands.ts"
import { startNats } from "../support/nats.ts"
import { agree, onNats } from "../support/owners.ts"

/** The owners of the first two are in one page. */
const endpoints = [198, 305, 1].map((n) => `https://push.example.com/${n}`)
const ids = endpoints.map(endpointHash)

type Random = (below: number) => number

/** The last one is the stand-in of an import. */
const names = ["user 0", "user 1", "user 2", "import:3"] as const
const registration = (user: number) =>
  ({
    subject: subjects.registration(channelToken("news"), userOf(user)),
    type: "registration.put",
    body: { user: names[user]!, at: 1 }
  }) as const

/**
 * Appends a random command: a user of four stores, replaces, loses or gets back an endpoint
 * of three.
 */
const appendOne = (
  log: EventLog["Service"],
  random: Random,
  puts: Map<string, number>,
  i: number
) => {
  const [user, n, other] = [random(4), random(3), random(3)]
  const [id, endpoint] = [ids[n]!, endpoints[n]!]
  const subject = subjects.subscription(userOf(user))
  const by = { user: names[user]! }
  const removed = { id: ids[other]!, lastModified: i }
  const what = random(9)
  if (what === 0)
    return log.append("log", {
      subject,
      type: "subscription.delete",
      body: { ...by, removed: [{ id, lastModified: i + 1 }, removed] }
    })
  const place = `${user} ${id}`
  if (what === 1)
    return log.append("log", {
      subject,
      type: "subscription.gone",
      body: {
        id,
        generation: puts.get(place) ?? 0,
        broadcast: 1,
        status: 410,
        cause: "gone",
        at: i
      }
    })
  if (what === 4) return log.append("log", registration(3))
  const key = random(3) === 0 ? "bbbb" : "aaaa"
  const data = { endpoint, keys: { auth: key, p256dh: key } }
  const replaces = what === 3 && other !== n ? { replaces: removed } : {}
  const restored = what === 5 ? { restored: true as const } : {}
  const body = { ...by, id, data, ...replaces, ...restored, lastModified: i + 1 }
  return Effect.tap(log.append("log", { subject, type: "subscription.put", body }), ({ seq }) =>
    Effect.sync(() => puts.set(place, seq))
  )
}

const lost = unavailable("write")(new Error("no answer"))

/** A server that fails at some writes, before or after it stores them, and at some moves. */
const failing = (random: Random) =>
  Layer.merge(
    Layer.effect(
      Buckets,
      Effect.map(Buckets, (buckets) =>
        Buckets.of({
          ...buckets,
          putText: (...what) => {
            const fate = random(30)
            if (fate === 0) return lost
            const put = buckets.putText(...what)
            return fate === 1 ? Effect.andThen(put, lost) : put
          }
        })
      )
    ),
    Layer.effect(
      EventLog,
      Effect.map(EventLog, (log) => {
        const append = (...what: Parameters<typeof log.append>) =>
          /moved|registration.delete/.test(what[1].type) && random(8) === 0
            ? lost
            : log.append(...what)
        const once = (...what: Parameters<typeof log.once>) =>
          what[1].type === "subscription.taken" && random(4) === 0 ? lost : log.once(...what)
        return EventLog.of({
          ...log,
          append: append as typeof log.append,
          once: once as typeof log.once
        })
      })
    )
  )

/** Numbers that are the same on every run. */
const randomFrom = (seed: number): Random => {
  let state = seed
  return (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 8) % below
  }
}

describe("moves", { timeout: 120_000 }, () => {
  it("are decided alike wherever the projector dies, and by a rebuild, byte for byte", async () => {
    await using server = await startNats({ syncAlways: false })
    await using admin = await administer(server.url)
    const random = randomFrom(7)
    const puts = new Map<string, number>()
    let i = 1
    await Effect.gen(function* () {
      yield* provision(1)
      const log = yield* EventLog
      // A channel without users would be forgotten at some moment.
      yield* log.append("log", registration(0))
      const projector = yield* Effect.forkDetach(
        Layer.launch(projectionLayer).pipe(Effect.provide(Layer.fresh(failing(randomFrom(11)))))
      )
      for (let run = 0; run < 120; run++) {
        yield* Effect.forEach(Array.from({ length: 12 }), () => appendOne(log, random, puts, i++), {
          concurrency: 4,
          discard: true
        })
        yield* Effect.sleep(random(200))
      }
      yield* Fiber.interrupt(projector)
    }).pipe(Effect.provide(onNats(server.url)), Effect.runPromise)
    await agree(server.url, admin)
  })

  it("leave no owner where the later user's list was written, and the earlier's not", async () => {
    await using server = await startNats({ syncAlways: false })
    await using admin = await administer(server.url)
    const put = (n: number, which: number, lastModified: number) =>
      ({
        subject: subjects.subscription(userOf(n)),
        type: "subscription.put",
        body: {
          user: `user ${n}`,
          id: ids[which]!,
          data: { endpoint: endpoints[which]!, keys: { auth: "aaaa", p256dh: "aaaa" } },
          lastModified
        }
      }) as const
    await Effect.gen(function* () {
      const log = yield* EventLog
      for (const which of [0, 2]) yield* log.append("log", put(1, which, which + 1))
      yield* folded(0)
    }).pipe(Effect.provide(foldingLayer(server.url)), Effect.runPromise)
    await Effect.gen(function* () {
      const log = yield* EventLog
      yield* log.append("log", put(2, 0, 1))
      yield* log.append("log", {
        subject: subjects.subscription(userOf(2)),
        type: "subscription.delete",
        body: { user: "user 2", removed: [{ id: ids[0]!, lastModified: 2 }] }
      })
      const buckets = yield* Buckets
      const isWritten = yield* Deferred.make<void>()
      const broken = Buckets.of({
        ...buckets,
        putText: (...what) => {
          if (what[1] === userOf(1)) return Effect.andThen(Deferred.await(isWritten), lost)
          const written = buckets.putText(...what)
          return what[1] === userOf(2)
            ? Effect.tap(written, () => Deferred.succeed(isWritten, undefined))
            : written
        }
      })
      const projector = yield* Effect.forkDetach(
        Layer.launch(projectionLayer).pipe(Effect.provideService(Buckets, broken))
      )
      yield* Deferred.await(isWritten).pipe(Effect.timeout("20 seconds"))
      yield* Fiber.interrupt(projector)
    }).pipe(Effect.provide(onNats(server.url)), Effect.runPromise)
    await agree(server.url, admin)
  })
})
