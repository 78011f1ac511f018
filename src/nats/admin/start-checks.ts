// Refuses a start on streams and buckets that another version of Bellcast stored in another form,
// that have more copies than the operator set, or that were copied at different moments: everything
// would look right, and new writes would be taken for old ones.

import { DeliverPolicy, JetStreamApiError } from "@nats-io/jetstream"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { changeIn, stateAfter } from "#domain/broadcast-state.ts"
import { type BucketName, bucketStream, metaKey, projections } from "#streams/buckets.ts"
import { followerNames } from "#streams/followers.ts"
import { storedForm, streamNames, streams } from "#streams/index.ts"
import { filters, parseBroadcast, subjects } from "#streams/subjects.ts"
import { Nats } from "../connection/connection.ts"
import {
  attempt,
  type NatsUnavailable,
  NoStorage,
  StartRefused,
  unavailable
} from "../connection/errors.ts"
import { followerFaults, ifThere, isSameTime } from "../follower/checkpoint.ts"
import { Buckets } from "../kv/bucket.ts"
import { parsedValue, readOr } from "../kv/entries.ts"
import { EventLog } from "../stream/event-log.ts"
import { infoOf, isLaterForm } from "../stream/info.ts"
import { readAll } from "../stream/pull.ts"
import { storedOf } from "../stream/stored.ts"
import { isNoStorage } from "./ensure-streams.ts"
import { bucketState, consumerState, type StreamState, streamState } from "./maintenance.ts"

const formOf = (form: string | undefined) =>
  form === undefined ? "a form without a number" : `form ${form}`

const refuse = (name: string, found: string | undefined, wanted: string, remedy: string) =>
  new StartRefused({
    message: `${name} is stored in ${formOf(found)}; this version reads form ${wanted}. ${remedy}`
  })

const remedyOfStreams =
  "Nothing was changed. Start the version that stored it, or restore a backup that this version " +
  "made, or begin with an empty store: another NATS account, or another BELLCAST_DATA_DIR"

/** Fails with StartRefused if LOG or WORK is stored in another form. */
export const refuseOtherStreams = Effect.gen(function* () {
  for (const stream of [streams.log, streams.work]) {
    const state = yield* streamState(stream)
    if (state !== undefined && state.form !== storedForm.streams)
      return yield* refuse(stream.name, state.form, storedForm.streams, remedyOfStreams)
  }
})

const remedyOfLater =
  "Nothing was changed. Start the version that made it. To go back to this version instead, stop " +
  "all processes, run `bellcast rebuild` of this version, and start them"

/**
 * The buckets that must be made again before this version can start: those that an earlier version
 * stored in another form, and, once that was begun, those that are missing or half built. Fails
 * with StartRefused if a later version stored a bucket, and if LOG or WORK has another form.
 */
export const bucketsToMake = Effect.gen(function* () {
  yield* refuseOtherStreams
  const log = yield* streamState(streams.log)
  if (log === undefined) return []
  const own = storedForm.buckets
  if (isLaterForm(log.making, own))
    return yield* refuse("What the buckets hold", log.making, own, remedyOfLater)
  const found = yield* Effect.forEach(projections, (bucket) =>
    Effect.map(bucketState(bucket), (state) => ({ bucket, state }))
  )
  for (const { bucket, state } of found)
    if (isLaterForm(state?.form, own))
      return yield* refuse(bucketStream(bucket), state?.form, own, remedyOfLater)
  const isEarlier = (state: StreamState | undefined) => state !== undefined && state.form !== own
  if (log.making === undefined && !found.some(({ state }) => isEarlier(state))) return []
  const { get } = yield* Buckets
  const wanted = yield* Effect.filter(found, ({ bucket, state }) =>
    state === undefined || isEarlier(state)
      ? Effect.succeed(true)
      : Effect.map(
          readOr(ifThere(get(bucket, metaKey)), undefined),
          (meta) => meta === undefined || meta.value.unbuilt === true
        )
  )
  return wanted.map(({ bucket }) => bucket)
})

/** Copies that nats-server keeps of a stream at most. */
export const replicasMax = 5

/**
 * Fails with StartRefused if a stream has more copies than the operator set. A start raises the
 * number; only an operator who asks for it lowers it, as the loss of one server then loses what was
 * accepted.
 */
export const refuseFewerCopies = Effect.fnUntraced(function* (set: Option.Option<number>) {
  if (Option.isNone(set)) return
  const nats = yield* Nats
  for (const name of streamNames) {
    const copies = (yield* infoOf(nats, name))?.config.num_replicas ?? 1
    if (copies > set.value)
      return yield* new StartRefused({
        message:
          `BELLCAST_REPLICAS=${set.value}, but ${name} has ${copies} copies. Leave it unset to ` +
          `keep them, or give copies up with \`bellcast streams --replicas ${set.value}\``
      })
  }
})

/** A server that has reserved too much refuses every update, also to fewer copies. */
const noStorage = (name: string, replicas: number, { message }: JetStreamApiError) =>
  new NoStorage({
    message:
      `NATS refuses to keep ${name} ${replicas} times (nats-server: ${message}). A server that ` +
      "has reserved more than it has storage refuses every change, also to fewer copies. Raise " +
      "max_file_store of each server or the limit of the account, or delete streams of others, " +
      "then repeat the command"
  })

/**
 * Gives every stream and bucket so many copies, more or fewer. Fails if one is missing, and with
 * NoStorage if a server has too little storage.
 */
export const setReplicas = Effect.fnUntraced(function* (replicas: number) {
  const { jsm } = yield* Nats
  for (const name of streamNames)
    yield* attempt("set copies", () => jsm.streams.update(name, { num_replicas: replicas })).pipe(
      Effect.mapError((error) =>
        error.cause instanceof JetStreamApiError && isNoStorage(error.cause)
          ? noStorage(name, replicas, error.cause)
          : error
      )
    )
})

/** All entries that a batch of a follower can change. */
const newestMax = 256
/** Broadcasts whose plan is looked for. The planner has 128 in hand. */
const plansMax = 256
/** Seconds after which no leader is left that was cut off. */
const looksInCluster = 12
const dayMillis = 24 * 60 * 60_000

const log = streams.log.name
const work = streams.work.name

/** The stream that an entry of a bucket was made from. */
const sourceOf = (bucket: BucketName, key: string): string =>
  bucket === "broadcasts" || (bucket === "channels" && key.endsWith(".pushes")) ? work : log

/** The last message that the newest entries of a bucket were made from, by stream. */
const newestOf = Effect.fnUntraced(function* (
  { js, request }: Nats["Service"],
  bucket: BucketName
) {
  const name = bucketStream(bucket)
  const last = (yield* infoOf({ request }, name))?.state.last_seq ?? 0
  const newest: Record<string, number> = { [log]: 0, [work]: 0 }
  if (last === 0) return newest
  const options = {
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: Math.max(1, last - newestMax + 1)
  }
  yield* attempt(`read ${name}`, async () => {
    for await (const batch of readAll(js, name, "last", options))
      for (const msg of batch) {
        if (msg.data.length === 0 || msg.subject.endsWith(`.${metaKey}`)) continue
        const stream = sourceOf(bucket, msg.subject)
        const entry = parsedValue(msg.string()) as { readonly seq?: number } | null | undefined
        newest[stream] = Math.max(newest[stream]!, Number(entry?.seq) || 0)
      }
  })
  return newest
})

/** Buckets with entries from after the end of their stream. */
const newerBuckets = Effect.gen(function* () {
  const nats = yield* Nats
  const newest = yield* Effect.forEach(
    projections,
    (bucket) => Effect.map(newestOf(nats, bucket), (seqs) => ({ bucket, seqs })),
    { concurrency: "unbounded" }
  )
  const faults: Array<string> = []
  for (const stream of [log, work]) {
    const last = (yield* infoOf(nats, stream))?.state.last_seq ?? 0
    for (const { bucket, seqs } of newest)
      if (seqs[stream]! > last)
        faults.push(
          `${bucketStream(bucket)} has message ${seqs[stream]} of ${stream}, ` +
            `which ends at ${last}`
        )
  }
  return faults
})

/** Whether WORK has plans of broadcasts that LOG does not have. */
const newerWork = Effect.gen(function* () {
  const eventLog = yield* EventLog
  const plan = (yield* ifThere(eventLog.last("work", filters.plans)))?.message
  if (plan?.type !== "plan") return []
  const { acceptedAt, broadcast } = plan
  const origin = yield* (yield* Nats)
    .message(log, { seq: broadcast })
    .pipe(Effect.mapError(unavailable("read")), ifThere)
  const last = (yield* infoOf(yield* Nats, log))?.state.last_seq ?? 0
  if (broadcast > last) return [`${work} has broadcast ${broadcast}, but ${log} ends at ${last}`]
  return origin === undefined || isSameTime(storedOf(origin).at, acceptedAt)
    ? []
    : [`broadcast ${broadcast} of ${work} is not that of ${log}`]
})

/** Whether LOG has counts of outcomes that WORK does not have. */
const olderOutcomes = Effect.gen(function* () {
  const fact = yield* ifThere((yield* EventLog).last("log", filters.finished))
  const finished = fact?.message
  if (finished?.type !== "broadcast.finished") return []
  const { taken = 0 } = (yield* ifThere((yield* Buckets).get("channels", metaKey)))?.value ?? {}
  if (fact!.seq <= taken) return []
  const last = (yield* infoOf(yield* Nats, work))?.state.last_seq ?? 0
  return finished.seq > last
    ? [`${work} ends at message ${last}, but ${log} counts outcomes up to ${finished.seq}`]
    : []
})

/** Whether a broadcast that the planner acknowledged has left a trace. */
const isPlanned = Effect.fnUntraced(function* (seq: number, subject: string, floor: number) {
  const eventLog = yield* EventLog
  const place = parseBroadcast(subject)
  if ((yield* eventLog.last("log", subjects.rejected(seq))) !== undefined) return true
  if (place === undefined) return true
  const changed = yield* eventLog.last("log", subjects.state(seq))
  const state = stateAfter(changed && changeIn(changed.message))
  // A broadcast that has not started has no plan.
  if (changed !== undefined && (changed.seq > floor || state === "scheduled")) return true
  const traces = yield* Effect.all(
    [
      ifThere(eventLog.last("work", subjects.plan(place.channel, seq))),
      eventLog.last("log", subjects.finished(place.channel, seq))
    ],
    { concurrency: 2 }
  )
  return traces.some((trace) => trace !== undefined)
})

/** Whether the planner has done with broadcasts of which WORK knows nothing. */
const olderWork = Effect.gen(function* () {
  const eventLog = yield* EventLog
  const nats = yield* Nats
  const floor =
    (yield* consumerState(streams.log, streams.log.consumers.planner))?.ack_floor.stream_seq ?? 0
  const plan = (yield* ifThere(eventLog.last("work", filters.plans)))?.message
  const since = (yield* Clock.currentTimeMillis) - streams.work.maxAgeMillis + dayMillis
  let seq = plan?.type === "plan" ? plan.broadcast : Math.max(0, floor - plansMax)
  for (let n = 0; n < plansMax; n++) {
    const found = yield* nats
      .message(log, { seq: seq + 1, next_by_subj: filters.broadcasts })
      .pipe(Effect.mapError(unavailable("read")), ifThere)
    if (found === undefined || found.seq > floor) return []
    seq = found.seq
    if (Date.parse(found.time) < since || (yield* isPlanned(seq, found.subject, floor))) continue
    return [`${work} lacks broadcast ${seq} of ${log}, which was planned`]
  }
  return []
})

/** A message that only a later version reads says nothing here, and must not refuse a start. */
const unlessLater = <R>(look: Effect.Effect<ReadonlyArray<string>, NatsUnavailable, R>) =>
  Effect.catchReason(look, "NatsUnavailable", "LaterVersion", () => Effect.succeed([]))

const faultsNow = Effect.gen(function* () {
  const nats = yield* Nats
  const buckets = yield* Buckets
  const ofFollowers = followerNames.map((name) => followerFaults(nats, buckets, name))
  const faults = yield* Effect.all(
    [...ofFollowers, newerBuckets, ...[newerWork, olderOutcomes, olderWork].map(unlessLater)],
    { concurrency: "unbounded" }
  )
  return [...new Set(faults.flat())]
})

/** A cluster may have a leader that was cut off: its stream is shorter, for 10 s at most. */
const faultsAtLast = Effect.gen(function* () {
  const faults = yield* faultsNow
  const replicas = (yield* infoOf(yield* Nats, log))?.config.num_replicas ?? 1
  if (faults.length === 0 || replicas === 1) return faults
  return yield* faultsNow.pipe(
    Effect.delay("1 second"),
    Effect.repeat({ until: (again) => again.length === 0, times: looksInCluster - 1 })
  )
})

/** Fails with StartRefused if LOG and WORK cannot be of the same moment. */
export const refuseOtherMoments = Effect.gen(function* () {
  const faults = (yield* Effect.all([newerWork, olderOutcomes, olderWork])).flat()
  if (faults.length > 0) return yield* otherMoments(faults)
})

const otherMoments = Effect.fnUntraced(function* (faults: ReadonlyArray<string>) {
  const isLogGone = ((yield* infoOf(yield* Nats, log))?.state.last_seq ?? 0) === 0
  return yield* new StartRefused({
    message:
      `the streams and buckets are copies of different moments: ${faults.join("; ")}. ` +
      `Stop all processes${isLogGone ? `, restore ${log} from its backup` : ""} ` +
      "and run `bellcast rebuild`"
  })
})

/**
 * Fails with StartRefused if streams and buckets cannot be of the same moment. Reads the streams
 * last: a service that runs only makes them longer.
 */
export const refuseOtherCopies = Effect.gen(function* () {
  const faults = yield* faultsAtLast
  if (faults.length > 0) return yield* otherMoments(faults)
})
