// Judges one durable consumer by what the server says of it, and repairs it: makes it again after
// somebody deleted it, changes it back, ends a pause. Several processes may do so at once: a repair
// that another process made first changes nothing.
import { type ConsumerConfig, DeliverPolicy, JetStreamApiError } from "@nats-io/jetstream"
import * as Effect from "effect/Effect"
import { metaKey, projections } from "#streams/buckets.ts"
import { type consumers, streams } from "#streams/index.ts"
import type { ConsumerSpec } from "#streams/spec.ts"
import { filters } from "#streams/subjects.ts"
import { countRepair } from "#telemetry/nats-metrics.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { createConsumer, updateConsumer } from "../admin/provision.ts"
import { Nats } from "../connection/connection.ts"
import { attempt, consumerExists } from "../connection/errors.ts"
import { Followers } from "../follower/follower.ts"
import { Watermark } from "../follower/watermark.ts"
import { Buckets } from "../kv/bucket.ts"
import { type ConsumerInfo, consumerConfig, consumerInfo, type StreamInfo } from "../stream/info.ts"

const timeoutMillis = 2_000
/** How long the projector may take to catch up before a pause is left as it is, until next time. */
const caughtUpMillis = 1_000
/**
 * A change is changed back at most so often. Two versions of Bellcast may declare a consumer
 * differently while they run side by side: they must not change it back and forth.
 */
const changedBackEveryMillis = 60_000

/** What is wrong with a consumer and was not repaired at the last look. */
export type Trouble = "missing" | "paused" | "changed"

/** A consumer and what earlier looks found. */
export interface ConsumerInCare {
  readonly stream: string
  readonly spec: ConsumerSpec
  readonly log: ReturnType<typeof makeLogs>
  acknowledged: Acknowledged | undefined
  /** What NATS made of the declaration when this process changed the consumer to it. */
  granted: Granted
  pending: number
  /** Set: so many unacknowledged messages, which is as many as NATS gives out. */
  cappedAt: number | undefined
  trouble: Trouble | undefined
  /** By the clock of `performance`. */
  changedBackAt: number
}

export const careFor = ({ consumer, stream }: (typeof consumers)[number]): ConsumerInCare => ({
  stream: stream.name,
  spec: consumer,
  log: makeLogs(consumer.name),
  acknowledged: undefined,
  granted: {},
  pending: 0,
  cappedAt: undefined,
  trouble: undefined,
  changedBackAt: Number.NEGATIVE_INFINITY
})

/** Looks at one consumer and repairs it. Fails if NATS cannot be asked. */
export const lookAt = Effect.fnUntraced(function* (care: ConsumerInCare, found: StreamInfo) {
  const { log, spec, stream } = care
  const info = yield* consumerInfo(yield* Nats, stream, spec.name, timeoutMillis)
  if (info === undefined) {
    const made = Effect.flatMap(makeAgain(care, found), ({ from, isMade }) =>
      isMade ? log.missing({ consumer: spec.name, stream, from }) : Effect.void
    )
    return yield* orLeave(care, "missing", made)
  }
  const edit = editOf(info.config, spec, care.granted)
  // The position of a consumer that loses messages says nothing.
  if (edit === undefined || edit.update !== undefined) remember(care, info, found)
  if (edit !== undefined)
    return yield* orLeave(care, "changed", changeBack(care, found, info.config, edit))
  if (info.paused === true) return yield* orLeave(care, "paused", resume(care))
  care.trouble = undefined
})

/** Whether this call made the consumer: another process may have been faster. */
const makeAgain = Effect.fnUntraced(function* (
  care: ConsumerInCare,
  { created, state }: StreamInfo
) {
  const { jsm } = yield* Nats
  const from = startAgain(care.acknowledged, { created, lastSeq: state.last_seq })
  const isMade = yield* attempt(`make ${care.spec.name} again`, () =>
    createConsumer(jsm, care.stream, care.spec, from).then(
      () => true,
      (error: unknown) => {
        if (error instanceof JetStreamApiError && error.code === consumerExists) return false
        throw error
      }
    )
  )
  care.trouble = undefined
  if (isMade) countRepair(care.spec.name, "made again")
  return { isMade, from }
})

const changeBack = Effect.fnUntraced(function* (
  care: ConsumerInCare,
  found: StreamInfo,
  before: Partial<ConsumerConfig>,
  edit: Edit
) {
  const { log, spec, stream } = care
  const { jsm } = yield* Nats
  const fields = { consumer: spec.name, stream, changed: edit.fields.join(",") }
  const now = performance.now()
  if (now < care.changedBackAt + changedBackEveryMillis) {
    care.trouble = "changed"
    return yield* log.fought(fields)
  }
  care.changedBackAt = now
  const operation = `change ${spec.name} back`
  if (edit.update === undefined) {
    yield* attempt(operation, () => jsm.consumers.delete(stream, spec.name))
    const { from } = yield* makeAgain(care, found)
    return yield* log.replaced({ ...fields, from })
  }
  const { update } = edit
  const { config } = yield* attempt(operation, () => updateConsumer(jsm, stream, spec, update))
  care.trouble = undefined
  care.granted = grantedOf(config, spec)
  const [was, is] = [before, config] as ReadonlyArray<Readonly<Record<string, unknown>>>
  if (edit.fields.every((field) => was![field] === is![field])) {
    // The update changed nothing, so nobody else changed it: NATS limits it.
    care.changedBackAt = Number.NEGATIVE_INFINITY
    return yield* log.limited({ consumer: spec.name, stream, ...care.granted })
  }
  countRepair(spec.name, "changed back")
  yield* log.changed(fields)
})

const resume = Effect.fnUntraced(function* (care: ConsumerInCare) {
  const { log, spec, stream } = care
  const { jsm } = yield* Nats
  const fields = { consumer: spec.name, stream }
  if (!(yield* isPauseOver.pipe(Effect.orElseSucceed(() => false)))) {
    care.trouble = "paused"
    return yield* log.paused(fields)
  }
  yield* attempt(`resume ${spec.name}`, () => jsm.consumers.resume(stream, spec.name))
  care.trouble = undefined
  countRepair(spec.name, "resumed")
  yield* log.resumed(fields)
})

/**
 * Whether nobody needs the pause. A rebuild pauses the consumers while it holds the lease of the
 * projector. If it was killed, the buckets lack something until the projector has caught up or the
 * rebuild is run again.
 */
const isPauseOver = Effect.gen(function* () {
  if (!(yield* Followers).runs("projector")) return false
  const last = yield* (yield* Nats).message(streams.log.name, { last_by_subj: filters.commands })
  yield* (yield* Watermark).reached(last?.seq ?? 0, caughtUpMillis)
  const buckets = yield* Buckets
  const metas = yield* Effect.forEach(projections, (bucket) => buckets.get(bucket, metaKey))
  return metas.every((meta) => meta !== undefined && meta.value.unbuilt !== true)
})

/** Leaves a trouble as it is, and says why, where NATS does not let this process repair it. */
const orLeave = <A, E extends { readonly cause: unknown }, R>(
  care: ConsumerInCare,
  trouble: Trouble,
  repair: Effect.Effect<A, E, R>
): Effect.Effect<void, never, R> =>
  Effect.matchEffect(repair, {
    onSuccess: () => Effect.void,
    onFailure: ({ cause }) => {
      care.trouble = trouble
      return care.log.unrepaired({ trouble, reason: String(cause) })
    }
  })

/** Remembers how far the consumer is, for the case that it is deleted before the next look. */
const remember = (care: ConsumerInCare, info: ConsumerInfo, { created }: StreamInfo) => {
  const { max_ack_pending: max = 0 } = info.config
  care.pending = info.num_pending
  care.cappedAt = max > 0 && info.num_ack_pending >= max ? max : undefined
  care.acknowledged = { stream: created, seq: info.ack_floor.stream_seq }
}

const makeLogs = (name: string) => ({
  missing: makeRateLimitedLog(
    `the consumer ${name} was deleted: it is made again, and delivers from the first message ` +
      "that was not acknowledged",
    Effect.logError
  ),
  replaced: makeRateLimitedLog(
    `the consumer ${name} was replaced or changed and loses messages: it is made again, and ` +
      "delivers from the first message that was not acknowledged",
    Effect.logError
  ),
  changed: makeRateLimitedLog(`the consumer ${name} was changed: it is changed back`),
  limited: makeRateLimitedLog(
    `NATS gives the consumer ${name} less than Bellcast asks for, by jetstream.limits of ` +
      "nats-server or the limits of the account: Bellcast keeps within it"
  ),
  fought: makeRateLimitedLog(
    `the consumer ${name} is changed again and again, by a person, a tool or another version of ` +
      "Bellcast: it is left so for a minute",
    Effect.logError
  ),
  unrepaired: makeRateLimitedLog(
    `NATS does not let this process repair the consumer ${name}`,
    Effect.logError
  ),
  resumed: makeRateLimitedLog(`the consumer ${name} was paused: it is resumed`),
  paused: makeRateLimitedLog(
    `the consumer ${name} is paused, and what it delivers waits: if no rebuild is running, start ` +
      "a process with the role projection, which resumes it, or run `bellcast rebuild`"
  )
})

/**
 * What an update must clear: with these, pulls are refused, messages lack their bodies, delays of
 * naks are wrong, or the server deletes the consumer.
 */
const cleared = {
  backoff: [],
  headers_only: false,
  inactive_threshold: 0,
  max_batch: 0,
  max_bytes: 0,
  max_expires: 0
} satisfies Partial<ConsumerConfig>

/** Where the declared consumers start. The others skip messages. */
const ownStarts: ReadonlyArray<unknown> = [DeliverPolicy.All, DeliverPolicy.StartSequence]

/** The fields that somebody changed, and how they can be changed back. */
interface Edit {
  readonly fields: ReadonlyArray<string>
  /**
   * What an update must set beside the declaration; undefined: the consumer must be deleted and
   * made again.
   */
  readonly update: Partial<ConsumerConfig> | undefined
}

const filtersOf = ({ filter_subject, filter_subjects = [] }: Partial<ConsumerConfig>) =>
  filter_subject === undefined ? filter_subjects : [filter_subject]

/** Whether an optional field has the value that the server assumes where it is absent. */
const isClear = (value: unknown): boolean =>
  value === undefined || value === 0 || value === false || (Array.isArray(value) && !value.length)

/**
 * The fields with which a consumer loses messages that it has not delivered: it acknowledges by
 * itself, skips what a filter does not match, gives up what was delivered often, or delivers jobs
 * without their bodies, which are refused for good.
 */
const losing = (config: Partial<ConsumerConfig>, spec: ConsumerSpec): ReadonlyArray<string> => {
  const declared = consumerConfig(spec)
  const { deliver_policy: start = DeliverPolicy.All } = config
  const kept = {
    ack_policy: config.ack_policy === declared.ack_policy,
    deliver_policy: ownStarts.includes(start),
    filter_subjects: String(filtersOf(config)) === String(spec.filters),
    headers_only: isClear(config.headers_only),
    max_deliver: config.max_deliver === declared.max_deliver
  }
  return Object.entries(kept).flatMap(([field, isKept]) => (isKept ? [] : field))
}

/** The fields in which NATS may give a consumer less than is declared. */
type Granted = Pick<Partial<ConsumerConfig>, "max_ack_pending" | "max_batch">

/**
 * What is different from the declaration; undefined: nothing that matters. `granted`: what NATS
 * made of the declaration, by its own limits.
 */
export const editOf = (
  config: Partial<ConsumerConfig>,
  spec: ConsumerSpec,
  granted: Granted = {}
): Edit | undefined => {
  const declared = { ...consumerConfig(spec), ...granted }
  const lost = losing(config, spec)
  const changed = [
    ...(["ack_wait", "max_ack_pending"] as const).filter((name) => config[name] !== declared[name]),
    ...(Object.keys(cleared) as Array<keyof typeof cleared>).filter(
      (name) =>
        !(isClear(config[name]) || lost.includes(name)) &&
        !(name === "max_batch" && config[name] === granted[name])
    )
  ]
  if (lost.length + changed.length === 0) return undefined
  return {
    fields: [...lost, ...changed],
    update: lost.length > 0 ? undefined : cleared
  }
}

/** What NATS made of the declaration, as of a consumer that was made or changed just now. */
export const grantedOf = (
  { max_ack_pending, max_batch = 0 }: Partial<ConsumerConfig>,
  spec: ConsumerSpec
): Granted => ({
  ...(max_ack_pending !== undefined &&
    max_ack_pending !== spec.maxAckPending && { max_ack_pending }),
  ...(max_batch > 0 && { max_batch })
})

/** How far a stream was acknowledged, and which stream that was. */
interface Acknowledged {
  /** When the stream was created, by the server. */
  readonly stream: string
  /** Everything up to this sequence is acknowledged. */
  readonly seq: number
}

/**
 * The first sequence that a consumer delivers which is made again. All messages from the first on
 * that were not acknowledged come again, with those that were acknowledged out of order and since
 * the last look. Without a look, and in another stream, from the beginning.
 */
export const startAgain = (
  seen: Acknowledged | undefined,
  stream: { readonly created: string; readonly lastSeq: number }
): number =>
  seen === undefined || seen.stream !== stream.created ? 1 : Math.min(seen.seq, stream.lastSeq) + 1
