// Compares every bucket but `cache` with what LOG and WORK say, while a service runs, and changes
// nothing. A service writes a value up to a second after the message, and so is behind the streams
// or ahead of the fold. So what differs is compared again at later moments, each time with all
// values that it had between the checkpoint of the service and the end of the streams.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { originOf } from "#broadcasts/state.ts"
import { endOfHistory } from "#domain/history.ts"
import { HistoryDays, readHistoryPlace } from "#history/place.ts"
import { bucketState } from "#nats/admin/maintenance.ts"
import { refuseOtherStreams } from "#nats/admin/start-checks.ts"
import { Nats } from "#nats/connection/connection.ts"
import { followerFaults } from "#nats/follower/checkpoint.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { NoScratch } from "#nats/kv/disk-buckets.ts"
import { readOr, scanStored } from "#nats/kv/entries.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { readServerTime } from "#nats/watch/server-time.ts"
import { EndedMillis } from "#projection/forget.ts"
import {
  type BucketName,
  bucketStream,
  channelOfKey,
  type EntryKey,
  keys,
  metaKey,
  projections
} from "#streams/buckets.ts"
import { followerNames, followers } from "#streams/followers.ts"
import { storedForm } from "#streams/index.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { compareBucket } from "./compare.ts"
import { type EntryName, openReadingFold, type Position, type ReadingFold } from "./reading-fold.ts"
import {
  type Beside,
  type Difference,
  differenceOf,
  essenceOf,
  formName,
  mayBePlannedBefore,
  withExpired
} from "./rules.ts"

/** Nothing is known of the buckets. `message` says why, and what to do. */
export class NotChecked extends Schema.TaggedError<NotChecked>()("NotChecked", {
  message: Schema.String
}) {}

const notChecked = (message: string) => new NotChecked({ message })

export interface Verified {
  /** Entries in the buckets, by bucket. */
  readonly entries: Readonly<Partial<Record<BucketName, number>>>
  /** At most `differencesMax` of them. */
  readonly differences: ReadonlyArray<Difference>
  /** How many there are. */
  readonly count: number
  readonly position: Position
  readonly moments: number
}

/** The first, at which all is compared, and those at which what differs is compared again. */
const momentsMax = 4

/** Milliseconds between two moments: a service writes each value every second. */
export const BetweenMoments: Context.Reference<number> = Context.Reference<number>(
  "bellcast/rebuild/BetweenMoments",
  { defaultValue: () => 2_000 }
)

/** One moment, with the wait for the service. */
const momentTimeout = "90 seconds"
/** How long a service may take to apply what is stored, and to write its checkpoint. */
const appliedTimeout = "30 seconds"
const lookAgain = "200 millis"

/** More are not compared again: they are counted as differences. */
const suspectsMax = 20_000
const differencesMax = 1_000
const readsAtOnce = 64

/** The temporary file of the fold may have no room. */
const ifRoom = <A, E, R>(check: Effect.Effect<A, E, R>) =>
  Effect.catchDefect(check, (defect) =>
    defect instanceof NoScratch ? Effect.fail(notChecked(defect.message)) : Effect.die(defect)
  )

/** Compares all buckets. Fails with NotChecked where nothing can be said. */
export const verify = Effect.fn("Rebuild.verify")(
  function* () {
    yield* refuseOtherStreams.pipe(
      Effect.catchTag("StartRefused", ({ message }) => Effect.fail(notChecked(message)))
    )
    yield* refuseUnbuilt
    yield* refuseOtherMoments
    const place = yield* readHistoryPlace
    const fold = yield* openReadingFold
    yield* foldToEnds(fold)
    const { entries, excess, suspects } = yield* compareAll(fold)
    let left: ReadonlyArray<Suspect> = suspects
    let moments = 1
    while (left.length > 0 && moments < momentsMax) {
      if (moments > 1) yield* Effect.sleep(yield* BetweenMoments)
      moments++
      left = yield* compareAgain(fold, left).pipe(
        Effect.timeoutOrElse({
          duration: momentTimeout,
          orElse: () => Effect.fail(notChecked(`NATS was too slow: no moment in ${momentTimeout}`))
        })
      )
    }
    // The fold may have read some of these messages and not others.
    const isShortened = JSON.stringify(yield* readHistoryPlace) !== JSON.stringify(place)
    if (left.length + excess > 0 && isShortened)
      return yield* notChecked("old messages of LOG were deleted meanwhile: run it again")
    if (left.length === 0 && excess > 0)
      return yield* notChecked(
        `more than ${suspectsMax} entries changed meanwhile: run it again when less is written`
      )
    const verified: Verified = {
      entries,
      differences: left.slice(0, differencesMax).map((each) => differenceOf(each, each)),
      count: left.length + excess,
      position: fold.position(),
      moments
    }
    return verified
  },
  Effect.scoped,
  ifRoom
)

/** Messages that come while as many are folded differ soon after. */
const behindMax = 1_000
const turnsMax = 5

/**
 * Folds on until few messages are left: what comes during the first turn, which takes minutes where
 * the streams are long, would all have to be compared again.
 */
const foldToEnds = Effect.fnUntraced(function* (fold: ReadingFold) {
  const sumOf = ({ projector, tally }: Position) => projector + tally
  for (let turn = 0, before = 0; turn < turnsMax; turn++) {
    yield* fold.goOn
    const now = sumOf(fold.position())
    if (turn > 0 && now - before < behindMax) return
    before = now
  }
})

/** An entry that differed, with both values as they were last. */
interface Suspect extends EntryName {
  readonly stored: string | undefined
  readonly folded: string | undefined
}

const refuseUnbuilt = Effect.gen(function* () {
  const { get } = yield* Buckets
  for (const bucket of projections) {
    const isOfForm = (yield* bucketState(bucket))?.form === storedForm.buckets
    const meta = isOfForm ? (yield* readOr(get(bucket, metaKey), undefined))?.value : undefined
    if (meta === undefined || meta.unbuilt === true)
      return yield* notChecked(
        `${bucketStream(bucket)} is gone or of another form, or a rebuild is under way or ended ` +
          "half-way: run `bellcast rebuild`"
      )
  }
})

/** Copies of different moments differ, and `bellcast rebuild` makes them fit. */
const refuseOtherMoments = Effect.gen(function* () {
  const nats = yield* Nats
  const buckets = yield* Buckets
  for (const name of followerNames) {
    const [fault] = yield* followerFaults(nats, buckets, name)
    if (fault !== undefined)
      return yield* notChecked(`copies of different moments: ${fault}. Run \`bellcast rebuild\``)
  }
})

/** First message of LOG that is not older than what a registration that ended is kept for. */
const readBeside = Effect.fnUntraced(function* ({ expired }: ReadingFold) {
  const { firstSince, following } = yield* EventLog
  const now = (yield* readServerTime).serverMillis
  const historySince = endOfHistory(now, (yield* HistoryDays).shortest)
  const from = (millis: number) =>
    Effect.map(firstSince("log", millis), (seq) => seq ?? Number.POSITIVE_INFINITY)
  const [erased] = yield* following("log", filters.erased, { from: 1, limit: 1 })
  const beside: Beside = {
    keptFrom: yield* from(now - (yield* EndedMillis)),
    areErased: erased !== undefined,
    historyFrom: yield* from(historySince),
    historySince,
    now,
    expired
  }
  return beside
})

/** Reads all buckets once, and compares them with the fold as it is. */
const compareAll = Effect.fnUntraced(function* (fold: ReadingFold) {
  const beside = yield* readBeside(fold)
  const suspects: Array<Suspect> = []
  const entries: Partial<Record<BucketName, number>> = {}
  let excess = 0
  const compare = (name: EntryName, stored: string | undefined, own: string | undefined) => {
    const folded = withExpired(name, own, beside)
    if (stored === folded) return
    if (essenceOf(name, stored, beside) === essenceOf(name, folded, beside)) return
    if (suspects.length < suspectsMax) suspects.push({ ...name, stored, folded })
    else excess++
  }
  for (const bucket of projections)
    entries[bucket] = yield* compareOne(fold, bucket, beside, compare)
  return { entries, excess, suspects }
})

/** Passes each entry to `compare` that may differ. Returns how many the bucket has. */
const compareOne = Effect.fnUntraced(function* (
  fold: ReadingFold,
  bucket: BucketName,
  { expired }: Beside,
  compare: (name: EntryName, stored: string | undefined, own: string | undefined) => void
) {
  /** Of these the fold has a part only. */
  const apart = new Set<string>()
  if (bucket === "channels")
    for (const channel of expired.keys()) apart.add(keys.channelPushes(channel))
  const unseen = new Set(apart)
  const own = (key: string) => ownOf(fold, { bucket, key })
  const changed = new Set<string>()
  let count = 0
  const compared = yield* compareBucket(
    bucket,
    fold.folded,
    ({ key, text, wanted }) => {
      changed.add(key)
      compare({ bucket, key }, text, wanted?.text)
    },
    (_, see) =>
      scanStored(bucket, (key, text, revision) => {
        count++
        if (!apart.has(key)) return see(key, text, revision)
        unseen.delete(key)
        compare({ bucket, key }, text, own(key))
      })
  )
  for (const part of compared.unequal())
    for (const { key, text } of part)
      if (!apart.has(key) && !changed.has(key)) compare({ bucket, key }, undefined, text)
  for (const key of unseen) compare({ bucket, key }, undefined, own(key))
  return count
})

/** The entry as its leader has it. One that is no JSON differs from any value. */
const readStored = Effect.fnUntraced(function* ({ bucket, key }: EntryName) {
  const { get } = yield* Buckets
  const found = yield* readOr(get(bucket, key as EntryKey<"meta">), "no JSON")
  return typeof found === "string" ? found : found && JSON.stringify(found.value)
})

/**
 * Compares these entries at another moment. Once the service says that the buckets have what was
 * folded, each entry must have a value that it had since, in the fold.
 */
const compareAgain = Effect.fnUntraced(function* (
  fold: ReadingFold,
  suspects: ReadonlyArray<Suspect>
) {
  yield* fold.goOn
  yield* untilStored(fold.position())
  const before = new Map(suspects.map((each) => [nameOf(each), ownOf(fold, each)]))
  const stored = yield* Effect.forEach(suspects, readStored, { concurrency: readsAtOnce })
  const begins = yield* readBegins(suspects)
  const values = new Map([...before].map(([name, text]) => [name, [text]]))
  yield* fold.goOnWatching(suspects, (entry, text) => {
    const all = values.get(nameOf(entry))!
    if (all.length < valuesMax) all.push(text)
    else all[all.length - 1] = text
  })
  const beside = yield* readBeside(fold)
  const left: Array<Suspect> = []
  for (const [n, suspect] of suspects.entries()) {
    const now = { bucket: suspect.bucket, key: suspect.key, stored: stored[n] }
    const own = values.get(nameOf(suspect))!
    const differs = yield* isDifferent(fold, now, own, { ...beside, ...begins(suspect) })
    if (differs) left.push({ ...now, folded: withExpired(suspect, own.at(-1), beside) })
  }
  return left
})

/** Values of an entry that are kept of a moment: a broadcast may be counted many times. */
const valuesMax = 500

const nameOf = ({ bucket, key }: EntryName): string => `${bucket} ${key}`

const ownOf = ({ folded }: ReadingFold, { bucket, key }: EntryName): string | undefined =>
  folded.entry(bucket, key)?.text

const isDifferent = Effect.fnUntraced(function* (
  fold: ReadingFold,
  now: EntryName & { readonly stored: string | undefined },
  values: ReadonlyArray<string | undefined>,
  known: Beside
) {
  const { stored } = now
  if (yield* hasExpired(fold, now, values)) return false
  const drafts = now.bucket === "drafts" ? yield* readForms([stored, ...values]) : undefined
  const beside = { ...known, ...(drafts === undefined ? {} : { drafts }) }
  const essence = essenceOf(now, stored, beside)
  return !values.some((text) => essenceOf(now, withExpired(now, text, beside), beside) === essence)
})

/** A broadcast whose plan has expired in WORK, and which never finished. */
const hasExpired = Effect.fnUntraced(function* (
  { workSince }: ReadingFold,
  { bucket, key, stored }: EntryName & { readonly stored: string | undefined },
  values: ReadonlyArray<string | undefined>
) {
  if (bucket !== "broadcasts" || stored === undefined || values.some((own) => own !== undefined))
    return false
  if (!mayBePlannedBefore(stored, workSince)) return false
  const origin = yield* originOf(Number(key))
  if (origin === undefined) return false
  const fact = subjects.finished(origin.channel, Number(key))
  return (yield* (yield* EventLog).last("log", fact)) === undefined
})

/** The forms of drafts in these indexes that LOG has. */
const readForms = Effect.fnUntraced(function* (texts: ReadonlyArray<string | undefined>) {
  const ids = new Set<string>()
  for (const text of texts) for (const [id] of text === undefined ? [] : indexOf(text)) ids.add(id)
  const found = yield* (yield* EventLog).lastOf("log", [...ids].map(subjects.draft))
  return new Set(found.map(({ seq, subject }) => formName(subject.split(".").at(-1)!, seq)))
})

const indexOf = (text: string): ReadonlyArray<readonly [string, number]> => {
  try {
    return (JSON.parse(text) as { drafts?: ReadonlyArray<[string, number]> }).drafts ?? []
  } catch {
    return []
  }
}

/** The begins of the channels of these entries. */
const readBegins = Effect.fnUntraced(function* (suspects: ReadonlyArray<EntryName>) {
  const channels = new Set(
    suspects.flatMap(({ bucket, key }) =>
      bucket === "channels" ? (channelOfKey(key)?.channel ?? []) : []
    )
  )
  const { get } = yield* Buckets
  const begins = new Map(
    yield* Effect.forEach(
      channels,
      (channel) =>
        Effect.map(
          get("channels", keys.channelBegin(channel)),
          (begin) => [channel, { since: begin?.value.since }] as const
        ),
      { concurrency: readsAtOnce }
    )
  )
  return ({ key }: EntryName) => {
    const begin = begins.get(channelOfKey(key)?.channel ?? ("" as never))
    return begin === undefined ? {} : { begin }
  }
})

/** Returns when the checkpoints of the service are not before what was folded. */
const untilStored = Effect.fnUntraced(function* (position: Position) {
  const { get } = yield* Buckets
  for (const name of followerNames) {
    let stored = 0
    const look = Effect.gen(function* () {
      const meta = yield* get(followers[name].checkpoint, metaKey)
      stored = meta?.value.seq ?? 0
      return stored >= position[name]
    })
    yield* look.pipe(
      Effect.repeat({ until: (isStored) => isStored, schedule: Schedule.spaced(lookAgain) }),
      Effect.timeoutOrElse({
        duration: appliedTimeout,
        orElse: () =>
          Effect.fail(
            notChecked(
              `the ${name} has stored its stream up to message ${stored}, and verify has read up ` +
                `to ${position[name]}: start a process with the role ` +
                `${name === "tally" ? "tally" : "projection"}, or try again when it has read on`
            )
          )
      })
    )
  }
})
