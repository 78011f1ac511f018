// A put of another user's endpoint that is rejected while LOG has no room to say so.
import { Effect, Fiber, Layer } from "effect"
import { assert, it } from "vitest"
import { endpointHash } from "#domain/subscription/owners.ts"
import { NatsUnavailable } from "#nats/connection/errors.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { projectionLayer } from "#projection/projector.ts"
import { subjects } from "#streams/subjects.ts"
import { until } from "../support/client.ts"
import { administer, folded, foldingLayer } from "../support/history.ts"
import { userOf } from "../support/history-commands.ts"
import { startNats } from "../support/nats.ts"
import { agree, onNats, ownersIn } from "../support/owners.ts"

/** Their owners are in one page. */
const endpoints = [198, 305].map((n) => `https://push.example.com/${n}`)
const ids = endpoints.map(endpointHash)

it("is rejected by the next run, too, whatever was written since", {
  timeout: 60_000
}, async () => {
  await using server = await startNats({ syncAlways: false })
  await using admin = await administer(server.url)
  const put = (n: number, which: number, key: string) =>
    ({
      subject: subjects.subscription(userOf(n)),
      type: "subscription.put",
      body: {
        user: `user ${n}`,
        id: ids[which]!,
        data: { endpoint: endpoints[which]!, keys: { auth: key, p256dh: key } },
        lastModified: n + 1
      }
    }) as const
  await Effect.gen(function* () {
    yield* (yield* EventLog).append("log", put(0, 0, "aaaa"))
    yield* folded(0)
  }).pipe(Effect.provide(foldingLayer(server.url)), Effect.runPromise)
  await Effect.gen(function* () {
    const log = yield* EventLog
    // The first is rejected; the second is in the same page; the first owner leaves.
    yield* log.append("log", put(1, 0, "bbbb"))
    yield* log.append("log", put(2, 1, "aaaa"))
    yield* log.append("log", {
      subject: subjects.subscription(userOf(0)),
      type: "subscription.delete",
      body: { user: "user 0", removed: [{ id: ids[0]!, lastModified: 2 }] }
    })
    const full = new NatsUnavailable({
      operation: "append",
      reason: { _tag: "NoRoom", stream: "BELLCAST_LOG" },
      cause: new Error("full")
    })
    let refusals = 0
    const once = (...what: Parameters<typeof log.once>) => {
      if (what[1].type !== "command.rejected") return log.once(...what)
      refusals += 1
      return full
    }
    const projector = yield* Effect.forkDetach(
      Layer.launch(projectionLayer).pipe(
        Effect.provideService(EventLog, EventLog.of({ ...log, once: once as typeof log.once }))
      )
    )
    // The rejection was tried again after the page was written.
    const isWritten = async () =>
      `$KV.bellcast_subscriptions.${userOf(2)}` in (await admin.entries()) ? refusals : undefined
    const first = yield* Effect.promise(() => until(isWritten, (count) => count !== undefined))
    yield* Effect.promise(() =>
      until(
        async () => refusals,
        (count) => count > first!
      )
    )
    yield* Fiber.interrupt(projector)
  }).pipe(Effect.provide(onNats(server.url)), Effect.runPromise)
  await agree(server.url, admin)
  const { lists } = ownersIn(await admin.entries())
  assert.deepEqual(lists, [[ids[1]!, userOf(2)]])
})
