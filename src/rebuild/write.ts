// Makes the buckets of the server equal to the folded ones: reads them once and writes only what
// differs. Meanwhile a bucket that must change is marked as unbuilt, so that no process starts if
// this one dies half-way, and planning and delivery are paused while lost buckets are rebuilt: a
// worker that reads half of a channel would treat the other half as gone.
import * as Effect from "effect/Effect"
import { endOfHistory } from "#domain/history.ts"
import { noCounts } from "#domain/registration.ts"
import { noOwners } from "#domain/subscription/owners.ts"
import { emptyList } from "#domain/subscription/subscription.ts"
import { HistoryDays } from "#history/place.ts"
import {
  consumerState,
  pauseConsumer,
  resumeConsumer,
  streamState
} from "#nats/admin/maintenance.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import type { DiskBuckets } from "#nats/kv/disk-buckets.ts"
import { parsedValue } from "#nats/kv/entries.ts"
import { builtMillis } from "#nats/kv/read-one.ts"
import type { Meta } from "#nats/kv/values.ts"
import { readServerTime } from "#nats/watch/server-time.ts"
import {
  type BucketName,
  bucketStream,
  isEndpointOwners,
  isRegistration,
  metaKey,
  projections
} from "#streams/buckets.ts"
import { consumers, streams } from "#streams/index.ts"
import { type Compared, compareBucket, isUnequal } from "./compare.ts"
import { failed, hindered, note, type RebuildFailed, reach } from "./notes.ts"

/** A batch of the group commit has at most 500 messages. */
const putsAtOnce = 1_000

const removalsAtOnce = 64

/** Entries of a bucket that are written together, with those that they replace. */
interface Difference extends Compared {
  /** Entries that the streams do not hold, with the text that takes the place of each. */
  readonly extra: ReadonlyArray<Extra>
  /** The present revisions of entries that the streams hold with another text, by their own. */
  readonly replaced: ReadonlyMap<number, number>
  /** Whether the bucket lacks an entry, or has another text for one. */
  readonly isShort: boolean
}

interface Extra {
  readonly key: string
  readonly revision: number
  /** Undefined: the entry is removed. */
  readonly empty: string | undefined
}

/**
 * The empty entry of a key. A killed nats-server 2.15 brings back what was overwritten, once the
 * key is removed: endpoints and keys of an erased user, and owners of endpoints. Undefined where
 * each entry is removed before the next one is written, or counts for nothing without another one.
 */
const emptyOf = (bucket: BucketName, key: string): string | undefined => {
  if (bucket === "subscriptions")
    return JSON.stringify(isEndpointOwners(key) ? noOwners : emptyList)
  if (bucket === "registrations" && !isRegistration(key)) return JSON.stringify(noCounts)
  return undefined
}

/** Returns how many entries of each bucket were written or removed. Run it under the leases. */
export const writeBuckets = Effect.fnUntraced(function* (
  folded: DiskBuckets
): Effect.fn.Return<
  ReadonlyArray<{ readonly bucket: BucketName; readonly changed: number }>,
  NatsUnavailable | RebuildFailed,
  Effect.Services<ReturnType<typeof compare>> | Buckets
> {
  const differences = yield* Effect.forEach(projections, (bucket) => compare(bucket, folded))
  const written = yield* Effect.forEach(differences, apply)
  // The checkpoints last: they say that everything before them is there.
  for (const [n, difference] of [...differences.entries()].reverse()) {
    const { bucket, meta } = difference
    const { changed, revision } = written[n]!
    const text = yield* metaText(folded, difference)
    if (text !== meta.text || changed > 0) yield* put(bucket, { key: metaKey, text, revision })
  }
  return differences.map(({ bucket }, n) => ({ bucket, changed: written[n]!.changed }))
})

const compare = Effect.fnUntraced(function* (bucket: BucketName, folded: DiskBuckets) {
  const extra: Array<Extra> = []
  const replaced = new Map<number, number>()
  const compared = yield* compareBucket(bucket, folded, ({ key, revision, text, wanted }) => {
    if (wanted !== undefined) return void replaced.set(wanted.revision, revision)
    const empty = emptyOf(bucket, key)
    if (text !== empty) extra.push({ key, revision, empty })
  })
  const isShort = yield* isUnequal(compared)
  return { ...compared, extra, replaced, isShort } satisfies Difference
})

/** Writes the difference. Returns the revision of `meta`, and how many entries were changed. */
const apply = Effect.fnUntraced(function* (difference: Difference) {
  const { bucket, extra, isShort, meta, replaced, unequal } = difference
  if (extra.length === 0 && !isShort) return { changed: 0, revision: meta.revision }
  // First: what is removed or made empty leaves room for the rest in a full bucket, and a bucket
  // without these is less wrong.
  const { remove } = yield* Buckets
  yield* Effect.forEach(
    extra,
    ({ empty, key, revision }) =>
      empty === undefined
        ? remove(bucket, revision)
        : Effect.asVoid(put(bucket, { key, text: empty, revision })),
    { concurrency: removalsAtOnce, discard: true }
  )
  const former = metaOf(meta.text) ?? { v: 1 }
  const text = JSON.stringify({ ...former, ...(yield* historyOf(bucket, former)), unbuilt: true })
  const revision = yield* put(bucket, { key: metaKey, text, revision: meta.revision })
  // Readers may take the bucket as built a little longer.
  yield* Effect.sleep(2 * builtMillis)
  let changed = extra.length
  for (const part of unequal()) {
    // The lease is renewed between two parts, also where all is equal.
    yield* Effect.yieldNow
    if (part.length === 0) continue
    yield* Effect.forEach(
      part,
      (each) => replace(bucket, { ...each, revision: replaced.get(each.revision) ?? 0 }),
      { concurrency: putsAtOnce, discard: true }
    )
    changed += part.length
    yield* reach({ stream: bucketStream(bucket), step: "written", done: changed })
  }
  return { changed, revision }
})

interface Put {
  readonly key: string
  readonly text: string
  /** The revision of the present entry; 0: there is none. */
  readonly revision: number
}

/**
 * Removes the present entry first: a killed nats-server 2.15 brings back what was overwritten, once
 * the key is removed for good. Nobody reads the bucket meanwhile, as its `meta` says.
 */
const replace = Effect.fnUntraced(function* (bucket: BucketName, each: Put) {
  const { remove } = yield* Buckets
  if (each.revision !== 0) yield* remove(bucket, each.revision)
  yield* put(bucket, { ...each, revision: 0 })
})

const put = Effect.fnUntraced(function* (bucket: BucketName, { key, revision, text }: Put) {
  const { putText } = yield* Buckets
  return yield* putText(bucket, key, text, revision).pipe(
    Effect.catchTag("AppendConflict", () =>
      Effect.fail(
        hindered(
          `somebody else writes ${bucketStream(bucket)}: ` +
            "stop projection and tally, run it again"
        )
      )
    ),
    Effect.catchReason("NatsUnavailable", "NoRoom", () => Effect.fail(noRoom(bucket)))
  )
})

const noRoom = (bucket: BucketName) =>
  failed(
    `${bucketStream(bucket)} has no room for what the streams hold: ` +
      "make it larger, run it again"
  )

/** Undefined: there is none, or it is no JSON. */
const metaOf = (text: string | undefined) => parsedValue(text ?? "") as Meta | undefined

/**
 * Of which time on LOG is whole: only the bucket `permissions` says it. Of one that was lost, or
 * that a killed rebuild has left without it: not before the shortest history, if LOG lacks any
 * message. `former`: the entry `meta` of the bucket; undefined: there is none.
 */
export const historyOf = Effect.fnUntraced(function* (
  bucket: BucketName,
  former: Partial<Meta> | undefined
) {
  if (bucket !== "permissions") return {}
  if (former?.historyFrom !== undefined) return { historyFrom: former.historyFrom }
  if (former !== undefined && former.unbuilt !== true) return { historyFrom: 0 }
  const log = yield* streamState(streams.log)
  const isWhole = log === undefined || log.messages === log.lastSeq
  const { serverMillis } = yield* readServerTime
  const { shortest } = yield* HistoryDays
  return { historyFrom: isWhole ? 0 : endOfHistory(serverMillis, shortest) }
})

/**
 * Revisions in a folded checkpoint mean nothing: replaces them by those of the server. Keeps how
 * far registrations are forgotten: what was written now has later revisions.
 */
const metaText = Effect.fnUntraced(function* (
  folded: DiskBuckets,
  { bucket, meta: { text } }: Difference
) {
  const made = folded.entry(bucket, metaKey)?.text ?? JSON.stringify({ v: 1 })
  const former = metaOf(text)
  const { historyFrom = 0 } = yield* historyOf(bucket, former)
  const kept = {
    ...(former?.forgottenUpTo !== undefined && { forgottenUpTo: former.forgottenUpTo }),
    ...(historyFrom > 0 && { historyFrom })
  }
  const meta: Meta = { ...(JSON.parse(made) as Meta), ...kept }
  if (meta.mark === undefined) return JSON.stringify(meta)
  const { revision } = yield* Buckets
  const revisions: Partial<Record<BucketName, number>> = {}
  for (const name of Object.keys(meta.mark.revisions) as Array<BucketName>)
    revisions[name] = yield* revision(name)
  return JSON.stringify({ ...meta, mark: { ...meta.mark, revisions } })
})

/**
 * Pauses every durable consumer and waits until workers have no message. The end of the scope
 * resumes them, unless `keep` was run and `end` was not: then the pause ends an hour after its last
 * renewal. `held` renews the pause and ends only with a failure.
 */
export const pauseWork = Effect.gen(function* () {
  let kept = false
  yield* Effect.acquireRelease(pauseAll, () =>
    Effect.suspend(() =>
      kept
        ? note("the buckets are half built: planning and delivery wait for an hour; run it again")
        : Effect.ignore(resumeAll)
    )
  )
  yield* nothingUnacknowledged.pipe(Effect.timeoutOption(unacknowledgedMillis))
  return {
    keep: Effect.sync(() => {
      kept = true
    }),
    held: pauseAll.pipe(Effect.delay(pauseMillis / 3), Effect.forever),
    end: Effect.suspend(() => {
      kept = false
      return resumeAll
    })
  }
})

/**
 * How long a pause lasts without renewal: if a rebuild is killed, the operator has time to run it
 * again before work resumes on half of the buckets.
 */
const pauseMillis = 60 * 60_000

const lookMillis = 100

/**
 * Longest wait for messages without an acknowledgement. A worker reads the buckets when it gets a
 * message, within milliseconds; what it reads again after a failure, it reads within
 * `appliedMillis`. Retries that wait for their time count too, and may wait for
 * hours: they are not delivered before the pause ends.
 */
const unacknowledgedMillis = 5_000

const pauseAll = Effect.gen(function* () {
  // The server ends the pause by its own clock.
  const { serverMillis } = yield* readServerTime
  const until = serverMillis + pauseMillis
  yield* Effect.forEach(
    consumers,
    ({ consumer, stream }) => pauseConsumer(stream, consumer, until),
    { discard: true }
  )
})

const resumeAll = Effect.forEach(
  consumers,
  ({ consumer, stream }) => resumeConsumer(stream, consumer),
  { discard: true }
)

const nothingUnacknowledged = Effect.gen(function* () {
  for (let announced = false; ; announced = true) {
    const states = yield* Effect.forEach(consumers, ({ consumer, stream }) =>
      consumerState(stream, consumer)
    )
    const unacknowledged = states.reduce((sum, state) => sum + (state?.num_ack_pending ?? 0), 0)
    if (unacknowledged === 0) return
    if (!announced)
      yield* note(
        `waiting for ${unacknowledged} messages that workers have in hand, ` +
          `at most ${unacknowledgedMillis / 1000} s`
      )
    yield* Effect.sleep(lookMillis)
  }
})
