// Checks what the service depends on, at most once a second for all requests: a check writes, and
// anybody may request one, also 25 times in a batch. Judges, too, whether broadcasts are planned,
// delivered and counted: by the readers of the streams, their messages that are due, and the roles
// that processes run.
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import { monotonicMillis } from "#clock/clocks.ts"
import { makeSingleFlight } from "#clock/single-flight.ts"
import { Nats } from "#nats/connection/connection.ts"
import { Processes, type RoleState, type Work } from "#nats/connection/processes.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { Backlog } from "#nats/watch/backlog.ts"
import { ServerHealth } from "#nats/watch/server-health.ts"
import { Space } from "#nats/watch/space.ts"
import { type ConsumerHealth, Upkeep } from "#nats/watch/upkeep.ts"
import { keys, metaKey } from "#streams/buckets.ts"
import { subjects } from "#streams/subjects.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"

export interface HealthOptions {
  /** A check that takes longer counts as failed. */
  readonly timeoutSeconds: number
  /** Whether the checks must not write. */
  readonly readonly: boolean
}

export const HealthView = Schema.StructWithRest(
  Schema.Struct({
    storage: Schema.Boolean,
    cache: Schema.Boolean,
    permission: Schema.Boolean,
    /** Whether no stream or bucket is so full that some requests get 507. */
    space: Schema.Boolean,
    /** Whether broadcasts are planned and pushes delivered, if there are any. */
    delivery: Schema.Boolean,
    /** Whether somebody runs each role. */
    roles: Schema.Boolean
  }),
  [Schema.Record(Schema.String, Schema.Boolean)]
)
export type HealthView = typeof HealthView.Type

const waitingView: HealthView = {
  storage: false,
  cache: true,
  permission: false,
  space: true,
  delivery: false,
  roles: false,
  buckets: false
}

/** The shortest time from the end of a check to the beginning of the next. */
const restMillis = 1_000

/** The lifetime of the entry that a check writes. */
const probeSeconds = 60

/** A check that another part of this process adds, such as whether an identity provider works. */
interface Check {
  readonly name: string
  readonly isWell: Effect.Effect<boolean>
}

export class Health extends Context.Service<
  Health,
  {
    /** The latest result, from a new check when the last one ended more than a second ago. */
    readonly view: Effect.Effect<HealthView>
    /** The result of the last check that ended, however old; undefined: none ended yet. */
    readonly last: () => HealthView | undefined
    /** Adds checks, each a member of the view. */
    readonly add: (checks: ReadonlyArray<Check>) => void
    /** Whether the process was told to stop: load balancers should send it nothing new. */
    readonly isLeaving: () => boolean
    readonly leave: () => void
  }
>()("bellcast/monitoring/Health") {
  static readonly layer = (options: HealthOptions) => Layer.effect(Health, make(options))

  /** While the buckets are made again: nothing that needs them works, and nothing is looked at. */
  static readonly waiting = Layer.succeed(Health, {
    view: Effect.succeed(waitingView),
    last: () => waitingView,
    add: () => {},
    isLeaving: () => false,
    leave: () => {}
  })
}

const make = Effect.fnUntraced(function* (options: HealthOptions) {
  const services = yield* Effect.context<
    Backlog | Buckets | EventLog | Nats | Processes | ServerHealth | Space | Upkeep
  >()
  const added: Array<Check> = []
  let latest: { readonly view: HealthView; readonly until: number } | undefined
  const looks = yield* makeSingleFlight<"look", HealthView>()
  const look = Effect.gen(function* () {
    const view = yield* lookWith(options, added)
    latest = { view, until: (yield* monotonicMillis) + restMillis }
    return view
  }).pipe(Effect.provide(services))
  const view = Effect.gen(function* () {
    if (latest !== undefined && (yield* monotonicMillis) < latest.until) return latest.view
    return yield* looks.join("look", look)
  })
  let isLeaving = false
  return Health.of({
    view,
    last: () => latest?.view,
    add: (checks) => void added.push(...checks),
    isLeaving: () => isLeaving,
    leave: () => {
      isLeaving = true
    }
  })
})

const lookWith = ({ readonly, timeoutSeconds }: HealthOptions, added: ReadonlyArray<Check>) =>
  Effect.all(
    {
      ...Object.fromEntries(
        added.map(({ isWell, name }) => [name, within(timeoutSeconds, name, isWell)])
      ),
      storage: within(timeoutSeconds, "storage", storage),
      cache: within(timeoutSeconds, "cache", cache(readonly)),
      permission: within(timeoutSeconds, "permission", permission),
      space: within(timeoutSeconds, "space", space),
      delivery: within(timeoutSeconds, "delivery", delivery),
      roles: within(timeoutSeconds, "roles", roles)
    },
    { concurrency: "unbounded" }
  )

/** The result of a check; false when the check fails, throws or times out. */
const within = <E, R>(seconds: number, name: string, check: Effect.Effect<boolean, E, R>) =>
  check.pipe(
    Effect.timeout(`${seconds} seconds`),
    Effect.catchCause((cause) => Effect.as(logFailed(name, { err: Cause.squash(cause) }), false))
  )

/**
 * Whether the leaders of LOG and of a bucket respond, the server stores what it is given, and a
 * projector runs: writes wait for the projector.
 */
const storage = Effect.gen(function* () {
  const buckets = yield* Buckets
  const log = yield* EventLog
  const [lease] = yield* Effect.all(
    [
      buckets.get("cache", keys.lease("projector")),
      buckets.get("subscriptions", metaKey),
      log.last("log", subjects.rejected(0))
    ],
    { concurrency: 3 }
  )
  const isStored = (yield* ServerHealth).trouble() === undefined
  return isStored && (lease?.value.holder ?? "") !== ""
})

const cache = Effect.fnUntraced(function* (readonly: boolean) {
  const buckets = yield* Buckets
  // A full cache drops its oldest entries, so a read is enough.
  if (readonly) return yield* Effect.as(buckets.get("cache", metaKey), true)
  const probe = yield* Random.nextInt
  const key = keys.probe(Math.abs(probe).toString(36))
  yield* buckets.put("cache", key, { v: 1, probe }, 0, { ttlSeconds: probeSeconds })
  return (yield* buckets.get("cache", key))?.value.probe === probe
})

const permission = Effect.gen(function* () {
  return (yield* (yield* Buckets).get("permissions", metaKey)) !== undefined
})

const space = Effect.gen(function* () {
  const { isRefusing, look } = yield* Space
  yield* look
  return !isRefusing()
})

const logs = new Map<string, ReturnType<typeof makeRateLimitedLog>>()

/** Logs that a check fails. */
const logFailed = (name: string, fields: Readonly<Record<string, unknown>>) => {
  const log = logs.get(name) ?? makeRateLimitedLog(`heartbeat: ${name} fails`)
  logs.set(name, log)
  return log(fields)
}

const delivery = Effect.gen(function* () {
  const { consumers, missing } = yield* (yield* Upkeep).look
  const refused = subscriptionFault((yield* Nats).refusal())
  const found =
    missing.length > 0
      ? missing.map((stream) => `${stream} is missing`)
      : (yield* readers(consumers)).flatMap((reader) => troubleOf(reader) ?? [])
  const unreadable = (yield* Processes).tally.unreadable()
  const troubles = [refused, unreadable, ...found].filter((each) => each !== undefined)
  if (troubles.length === 0) return true
  yield* logFailed("delivery", { reason: troubles.join("; ") })
  return false
})

/** The state of each durable consumer and follower. */
const readers = Effect.fnUntraced(function* (consumers: ReadonlyArray<ConsumerHealth>) {
  const { following, waiting } = yield* (yield* Backlog).snapshot
  const { states, work } = yield* Processes
  const { refusal } = yield* Nats
  const now = yield* Clock.currentTimeMillis
  const readerOf = (reader: string, messages: number, dueAt: number | undefined): ReaderState => ({
    reader,
    messages,
    dueMillis: dueAt && now - dueAt,
    work: work(reader),
    consumer: consumers.find(({ consumer }) => consumer === reader),
    processes: processesOf(reader, states()),
    refusal: refusal()
  })
  return [
    ...waiting.map(({ consumer, dueAt, messages }) => readerOf(consumer, messages, dueAt)),
    ...following.map(({ dueAt, follower, messages }) => readerOf(follower, messages, dueAt))
  ]
})

/** Whether somebody runs each role, or did a minute ago. */
const roles = Effect.gen(function* () {
  // Fails where NATS is away: then nothing is known.
  yield* (yield* Upkeep).look
  const fault = rolesFault(yield* Processes)
  if (fault === undefined) return true
  yield* logFailed("roles", { reason: fault })
  return false
})

/** The role that reads as each durable consumer and follower. */
const roleOf: Readonly<Record<string, RoleState["role"]>> = {
  planner: "fanout",
  deliver: "delivery",
  limited: "delivery",
  retry: "delivery",
  states: "delivery",
  projector: "projection",
  tally: "tally"
}

/** A durable consumer or a follower. */
export interface ReaderState {
  readonly reader: string
  /** Messages that are not acknowledged, or behind the checkpoint. */
  readonly messages: number
  /** For how long the first message is stored that no process took; undefined: all were taken. */
  readonly dueMillis: number | undefined
  readonly work: Omit<Work, "reader">
  /** Of a consumer: whether somebody deleted or paused it, and whether NATS gives out no more. */
  readonly consumer: Pick<ConsumerHealth, "cappedAt" | "trouble"> | undefined
  /** Processes that run its role. */
  readonly processes: number
  /** What NATS refused to this process last, and how long ago. */
  readonly refusal: { readonly reason: string; readonly millis: number } | undefined
}

/**
 * How long messages may be due while none ends. Longer than a restart of all workers, and than the
 * longest attempt of a push (`BELLCAST_PUSH_TIMEOUT_MILLIS` is a minute at most).
 */
export const stalledMillisMax = 120_000
/** How long NATS may refuse messages to a process. Longer than the election of a leader. */
export const refusedMillisMax = 60_000

/**
 * How long nobody may run a role. Longer than a restart of its only process: that serves on for
 * 5 s, drains for 20 s at most, and starts.
 */
export const absentMillisMax = 60_000

/** Why a reader makes no progress, in words; undefined: it does, or nothing is due. */
export const troubleOf = (state: ReaderState): string | undefined => {
  const { consumer, messages, reader, work } = state
  const trouble = consumer?.trouble
  // A consumer that was changed still delivers, and is changed back.
  if (trouble === "missing" || trouble === "paused") return `${reader} is ${trouble}`
  if (work.refusedMillis >= refusedMillisMax)
    return (
      `${reader}: NATS has refused messages to a process for ` +
      `${Math.round(work.refusedMillis / 1000)} s, whose log says why`
    )
  const millis = stalledMillis(state)
  if (millis < stalledMillisMax) return undefined
  const seconds = Math.round(millis / 1000)
  return `${reader}: ${messages} wait and none ended for ${seconds} s; ${causeOf(state, seconds)}`
}

/** For how long something is due and nothing ended; 0: nothing is due. */
const stalledMillis = ({ dueMillis = 0, work }: ReaderState): number =>
  Math.min(Math.max(dueMillis, work.takenMillis), work.endedMillis)

/** Why nothing ends although something is due, with what helps. */
const causeOf = (state: ReaderState, seconds: number): string => {
  const { consumer, processes, reader, refusal, work } = state
  const role = roleOf[reader]
  if (processes === 0) return `no process runs the role ${role}: start one (BELLCAST_ROLES)`
  if (consumer?.cappedAt !== undefined)
    return (
      `${consumer.cappedAt} messages are not acknowledged, and NATS gives out no more: raise ` +
      "max_ack_pending of jetstream.limits or of the account"
    )
  if (work.reason !== undefined) return `messages are taken and none ends: ${work.reason}`
  if (refusal !== undefined && refusal.millis < seconds * 1000)
    return `NATS refused this process something: ${refusal.reason}`
  return `${processes} processes run the role ${role}: their logs may say why`
}

/**
 * That NATS refused a subscription within the last minute, in words; undefined: it did not. Whoever
 * subscribed waits for messages that do not come.
 */
export const subscriptionFault = (refusal: ReaderState["refusal"]): string | undefined =>
  refusal !== undefined && refusal.millis < refusedMillisMax && /subscription/i.test(refusal.reason)
    ? `NATS refused this process a subscription: ${refusal.reason}`
    : undefined

/** The role that nobody runs, in words; undefined: there is none. */
export const rolesFault = ({
  isKnown,
  states
}: Pick<Processes["Service"], "isKnown" | "states">): string | undefined => {
  if (!isKnown())
    return (
      "NATS does not bring back what this process publishes on bellcast.sys.process: permit its " +
      "login to publish and subscribe to bellcast.sys.>"
    )
  const absent = states().filter(({ absentMillis }) => absentMillis >= absentMillisMax)
  if (absent.length === 0) return undefined
  const roles = absent.map(({ role }) => role).join(", ")
  const seconds = Math.round(Math.max(...absent.map(({ absentMillis }) => absentMillis)) / 1000)
  return `no process runs the role ${roles} (for ${seconds} s): start one (BELLCAST_ROLES)`
}

/** Processes that run the role of a reader. */
const processesOf = (reader: string, states: ReadonlyArray<RoleState>): number =>
  states.find(({ role }) => role === roleOf[reader])?.processes ?? 0
