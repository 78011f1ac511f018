// How far the projector has applied LOG. Gateways wait for it before they respond to a write
// (read-your-writes), the planner before it cuts a broadcast into shards.
import type { NatsConnection } from "@nats-io/transport-node"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { monotonicMillis } from "#clock/clocks.ts"
import { MinimumRevisions } from "#domain/job.ts"
import { subjects } from "#streams/subjects.ts"
import { Nats } from "../connection/connection.ts"
import { NatsUnavailable } from "../connection/errors.ts"
import { Processes, type RoleState } from "../connection/processes.ts"
import { PubSub } from "../connection/pubsub.ts"

/**
 * The buckets have everything of LOG up to `log` at the revisions `floor` or later, except the
 * buckets named in `short`.
 */
const Applied = Schema.Struct({
  log: Schema.Int,
  /** Minimum revisions of the buckets. */
  floor: MinimumRevisions,
  /** Buckets that have no room for something up to `log`. */
  short: Schema.optionalKey(Schema.Array(Schema.String)),
  /** No command after this one, up to `log`, was rejected. Unset: maybe any. */
  refused: Schema.optionalKey(Schema.Int)
})
export type Applied = typeof Applied.Type

const decodeApplied = Schema.decodeUnknownExit(Applied)

/**
 * The longest wait for the buckets to show a stored command. Longer than the projector's
 * failover of 3 s.
 */
export const appliedMillis = 5_000

/**
 * Announcements may be lost, so a process requests the watermark this often while a waiter has
 * waited for longer: once for all its waiters, as many wait exactly when the projector is slow.
 */
const requestMillis = 250

export class Watermark extends Context.Service<
  Watermark,
  {
    /** Returns when the buckets have everything up to `seq`. Fails with NotApplied. */
    readonly reached: (
      seq: number,
      timeoutMillis: number
    ) => Effect.Effect<Applied, NatsUnavailable>
    /** For the projector: announces the watermark to all processes. */
    readonly announce: (applied: Applied) => Effect.Effect<void>
    /**
     * For a projector that ends: this process does not respond with its watermark any more. The
     * next projector may run elsewhere, and a request takes the first response.
     */
    readonly retract: Effect.Effect<void>
  }
>()("bellcast/nats/Watermark") {
  static readonly layer = Layer.effect(
    Watermark,
    Effect.gen(function* () {
      const { listen, nc } = yield* Nats
      const pubsub = yield* PubSub
      const { states } = yield* Processes
      const state: State = {
        latest: { log: 0, floor: { subscriptions: 0, registrations: 0 } },
        own: undefined,
        waiters: new Set(),
        waiting: Latch.makeUnsafe(false)
      }
      yield* pubsub.subscribe(subjects.applied, (body) => receive(state, body))
      yield* respond(listen, state)
      yield* Effect.forkScoped(Effect.forever(requestForAll(nc, state)))
      return Watermark.of({
        reached: (seq, timeoutMillis) => reached(state, states, seq, timeoutMillis),
        announce: (applied) =>
          Effect.sync(() => {
            state.own = applied
            update(state, applied)
            pubsub.publish(subjects.applied, applied)
          }),
        retract: Effect.sync(() => {
          state.own = undefined
        })
      })
    })
  )
}

interface State {
  latest: Applied
  /** The watermark of the projector in this process; undefined: it runs elsewhere. */
  own: Applied | undefined
  /** The oldest first. */
  readonly waiters: Set<Waiter>
  /** Open while there are waiters. */
  readonly waiting: Latch.Latch
}

interface Waiter {
  readonly seq: number
  /** By the monotonic clock. */
  readonly since: number
  readonly applied: Deferred.Deferred<Applied>
}

const update = (state: State, applied: Applied): void => {
  if (applied.log < state.latest.log) return
  state.latest = applied
  for (const waiter of state.waiters) {
    if (waiter.seq > applied.log) continue
    state.waiters.delete(waiter)
    Deferred.doneUnsafe(waiter.applied, Effect.succeed(applied))
  }
}

/** Ignores malformed announcements. */
const receive = (state: State, body: unknown): void => {
  const applied = decodeApplied(body)
  if (applied._tag === "Success") update(state, applied.value)
}

/** Responds to requests for the watermark if the projector runs in this process. */
const respond = (listen: Nats["Service"]["listen"], state: State) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      listen({
        subject: subjects.appliedGet,
        receive: (msg) => {
          if (state.own !== undefined) msg.respond(JSON.stringify(state.own))
        }
      })
    ),
    (subscription) => Effect.sync(() => subscription.unsubscribe())
  )

const requestLatest = (nc: NatsConnection, state: State) =>
  Effect.tryPromise(async () => {
    const msg = await nc.request(subjects.appliedGet, undefined, { timeout: requestMillis })
    receive(state, msg.json())
  }).pipe(Effect.ignore)

/** Waits for waiters, requests the watermark for them until all have left, and returns. */
const requestForAll = Effect.fnUntraced(function* (nc: NatsConnection, state: State) {
  yield* state.waiting.await
  let requestedAt = 0
  while (true) {
    const [oldest] = state.waiters
    if (oldest === undefined) return state.waiting.closeUnsafe()
    const now = yield* monotonicMillis
    const left = Math.max(oldest.since, requestedAt) + requestMillis - now
    if (left > 0) yield* Effect.sleep(left)
    else {
      requestedAt = now
      yield* requestLatest(nc, state)
    }
  }
})

/** Whether this process knows that no other one, and not itself, projects. */
const isAway = (states: ReadonlyArray<RoleState>): boolean =>
  states.some(
    ({ absentMillis, processes, role }) =>
      role === "projection" && processes === 0 && absentMillis > 0
  )

const reached = Effect.fnUntraced(function* (
  state: State,
  states: Processes["Service"]["states"],
  seq: number,
  timeoutMillis: number
) {
  if (state.latest.log >= seq) return state.latest
  const waiter = { seq, since: yield* monotonicMillis, applied: Deferred.makeUnsafe<Applied>() }
  state.waiters.add(waiter)
  state.waiting.openUnsafe()
  const found = yield* Deferred.await(waiter.applied).pipe(
    Effect.timeoutOption(timeoutMillis),
    Effect.ensuring(Effect.sync(() => state.waiters.delete(waiter)))
  )
  if (found._tag === "Some") return found.value
  return yield* new NatsUnavailable({
    operation: "projection",
    reason: { _tag: "NotApplied", seq },
    cause: new Error(
      isAway(states())
        ? "no process runs the role projection: start one (BELLCAST_ROLES)"
        : `sequence ${seq} was not applied within ${timeoutMillis} ms`
    )
  })
})
