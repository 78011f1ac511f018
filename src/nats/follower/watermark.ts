// How far the projection is. Writers wait for it before they answer (read-your-writes), the planner before it cuts a broadcast.
import { Clock, Context, Deferred, Effect, Layer, Schema } from "effect"
import { MinimumRevisions } from "#domain/minimum-revisions.ts"
import { subjects } from "#streams/subjects.ts"
import { Nats } from "../connection/connection.ts"
import { NatsUnavailable } from "../connection/errors.ts"
import { PubSub } from "../connection/pubsub.ts"

/** Everything in LOG up to `log` can be read from the buckets, but `short` ones, at these revisions. */
const Applied = Schema.Struct({
  log: Schema.Int,
  floor: MinimumRevisions,
  /** Buckets that lack something up to `log`, because they have no room for it. */
  short: Schema.optionalKey(Schema.Array(Schema.String))
})
export type Applied = typeof Applied.Type

const decodeApplied = Schema.decodeUnknownExit(Applied)

/** PubSub are core messages and may be missed: a waiter asks again this often. */
const askMillis = 250

export class Watermark extends Context.Service<
  Watermark,
  {
    /** Returns once the buckets show everything up to `seq`. */
    readonly reached: (
      seq: number,
      timeoutMillis: number
    ) => Effect.Effect<Applied, NatsUnavailable>
    /** For the projector: tell everybody how far it is. */
    readonly announce: (applied: Applied) => Effect.Effect<void>
  }
>()("bellcast/nats/Watermark") {
  static readonly layer = Layer.effect(
    Watermark,
    Effect.gen(function* () {
      const { nc } = yield* Nats
      const announcements = yield* PubSub
      let latest: Applied = { log: 0, floor: { subscriptions: 0, registrations: 0 } }
      let own: Applied | undefined
      const waiters = new Map<Deferred.Deferred<Applied>, number>()

      const learn = (applied: Applied) => {
        if (applied.log < latest.log) return
        latest = applied
        for (const [waiter, seq] of waiters) {
          if (seq > applied.log) continue
          waiters.delete(waiter)
          Deferred.doneUnsafe(waiter, Effect.succeed(applied))
        }
      }

      // Thrown at by what is not of this form, the client would stop reading, whatever else comes, and say nothing.
      const heard = (body: unknown) => {
        const applied = decodeApplied(body)
        if (applied._tag === "Success") learn(applied.value)
      }

      yield* announcements.listen(subjects.applied, heard)
      yield* Effect.acquireRelease(
        Effect.sync(() =>
          nc.subscribe(subjects.appliedGet, {
            callback: (error, msg) => {
              if (error === null && own !== undefined) msg.respond(JSON.stringify(own))
            }
          })
        ),
        (subscription) => Effect.sync(() => subscription.unsubscribe())
      )

      const ask = Effect.tryPromise(() =>
        nc.request(subjects.appliedGet, undefined, { timeout: askMillis })
      ).pipe(
        Effect.map((msg) => heard(msg.json())),
        Effect.ignore
      )

      const reached = Effect.fnUntraced(function* (seq: number, timeoutMillis: number) {
        if (latest.log >= seq) return latest
        const waiter = Deferred.makeUnsafe<Applied>()
        waiters.set(waiter, seq)
        const deadline = (yield* Clock.currentTimeMillis) + timeoutMillis
        while (true) {
          const left = deadline - (yield* Clock.currentTimeMillis)
          const applied = yield* Deferred.await(waiter).pipe(
            Effect.timeoutOption(Math.max(0, Math.min(askMillis, left)))
          )
          if (applied._tag === "Some") return applied.value
          if (left <= 0) {
            waiters.delete(waiter)
            return yield* new NatsUnavailable({
              operation: "projection",
              reason: { _tag: "NotApplied", seq },
              cause: new Error(`sequence ${seq} was not applied within ${timeoutMillis} ms`)
            })
          }
          yield* ask
        }
      })

      const announce = (applied: Applied) =>
        Effect.sync(() => {
          own = applied
          learn(applied)
          announcements.tell(subjects.applied, applied)
        })

      return Watermark.of({ reached, announce })
    })
  )
}
