// Reads many entries of a bucket: those of some keys or wildcards with as few requests as the
// server allows, or all of them, for rebuilds and for counts that are made once.

import { DeliverPolicy } from "@nats-io/jetstream"
import * as Effect from "effect/Effect"
import { type BucketName, bucketStream, bucketSubject, metaKey } from "#streams/buckets.ts"
import { Nats } from "../connection/connection.ts"
import { attempt, type NatsUnavailable, unavailable } from "../connection/errors.ts"
import { textOf } from "../connection/headers.ts"
import { readAll } from "../stream/pull.ts"
import { readAny, readDirect } from "../stream/read-direct.ts"
import { Buckets } from "./bucket.ts"
import type { BucketOf, Entry, ValueIn, ValueOf } from "./values.ts"

/**
 * Reads the entries of keys or wildcards with one request; in halves where they do not fit into one
 * response. `narrow`: the parts of a single wildcard that does not fit.
 */
export const readParts = <K extends string>(
  buckets: Buckets["Service"],
  bucket: BucketOf<K>,
  filters: ReadonlyArray<K>,
  minRevision: number,
  narrow: (filter: K) => ReadonlyArray<K> = () => []
): Effect.Effect<ReadonlyArray<Entry<ValueOf<K>>>, NatsUnavailable> =>
  Effect.gen(function* () {
    const entries = yield* buckets.getMany(bucket, filters, minRevision)
    if (entries !== undefined) return entries
    const half = Math.ceil(filters.length / 2)
    const parts =
      filters.length > 1
        ? [filters.slice(0, half), filters.slice(half)]
        : narrow(filters[0]!).map((filter) => [filter])
    if (parts.length === 0)
      return yield* unavailable(`read ${bucket}`)(new Error("one entry is too large"))
    const below = yield* Effect.forEach(parts, (part) =>
      readParts(buckets, bucket, part, minRevision, narrow)
    )
    return below.flat()
  })

/**
 * Passes every entry of a bucket to `see`, with `meta`: the text and the revision. The text of an
 * entry that a client of NATS deleted is empty. An entry that changes meanwhile may come twice;
 * none is missed. Reads the whole bucket, or what the wildcard `only` matches.
 */
export const eachStored = (
  bucket: BucketName,
  see: (key: string, text: string, revision: number) => void,
  only = ">"
) =>
  Effect.flatMap(Nats, ({ js }) =>
    attempt(`read ${bucket}`, async () => {
      const prefix = bucketSubject(bucket, "")
      const options = {
        filter_subjects: [prefix + only],
        deliver_policy: DeliverPolicy.LastPerSubject
      }
      for await (const batch of readAll(js, bucketStream(bucket), "last", options))
        for (const msg of batch) see(msg.subject.slice(prefix.length), msg.string(), msg.seq)
    })
  )

/**
 * The value of a text; undefined: the entry was deleted, or is no JSON. Only a client of NATS
 * writes such a text. One entry must not end all that reads its bucket, and `bellcast verify` names
 * it.
 */
export const parsedValue = (text: string): unknown => {
  if (text === "") return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Reads one entry. Returns `instead` where that is no JSON. */
export const readOr = <A, B, E, R>(read: Effect.Effect<A, E, R>, instead: B) =>
  Effect.catchDefect(
    read as Effect.Effect<A | B, E, R>,
    (defect): Effect.Effect<A | B, E, R> =>
      defect instanceof SyntaxError ? Effect.succeed(instead) : Effect.die(defect)
  )

/** Passes an entry on, unless it has no value. */
const seeValue = <V>(key: string, text: string, see: (key: string, value: V) => void): void => {
  const value = parsedValue(text)
  if (value !== undefined) see(key, value as V)
}

/**
 * As `eachStored`, from any replica and without a consumer, which auditors may not create, and
 * without `meta` and deleted entries.
 */
export const scanStored = (
  bucket: BucketName,
  see: (key: string, text: string, revision: number) => void
) =>
  Effect.flatMap(Nats, (nats) =>
    attempt(`read ${bucket}`, async () => {
      const prefix = bucketSubject(bucket, "")
      for await (const batch of readDirect(nats, bucketStream(bucket), `${prefix}>`))
        for (const { data, seq, subject } of batch) {
          const key = subject.slice(prefix.length)
          if (key !== metaKey && data.length > 0) see(key, textOf(data), seq)
        }
    })
  )

/**
 * Passes every entry of a bucket but `meta` to `see`, from any replica and without a consumer. An
 * entry that changes meanwhile may come twice. Reads the whole bucket.
 */
export const scanEntries = <B extends BucketName>(
  bucket: B,
  see: (key: string, value: ValueIn<B>) => void
) => scanStored(bucket, (key, text) => seeValue(key, text, see))

/**
 * Passes every entry of a bucket but `meta` to `see`, or those that the wildcard `only` matches. An
 * entry that changes meanwhile may come twice; none is missed. Reads the whole bucket.
 */
export const eachEntry = <B extends BucketName>(
  bucket: B,
  see: (key: string, value: ValueIn<B>) => void,
  only?: string
) =>
  eachStored(
    bucket,
    (key, text) => {
      if (key !== metaKey) seeValue(key, text, see)
    },
    only
  )

/** An entry of a bucket, `meta` included. */
export interface Written {
  readonly key: string
  /** Empty: a client of NATS deleted the entry. */
  readonly text: string
  readonly revision: number
  /** When the server stored it, milliseconds since the epoch. */
  readonly at: number
}

/**
 * The first entries that were written after a revision and were not written again since, in the
 * order of their writing; and whether there are more. A bucket is so an index of its entries by
 * time: a read costs what it returns, however large the bucket is. Any replica responds, so the
 * last entries may be missing for a moment.
 */
export const writtenAfter = (bucket: BucketName, revision: number, limit: number) =>
  Effect.flatMap(Nats, (nats) =>
    attempt(`read ${bucket}`, async () => {
      const prefix = bucketSubject(bucket, "")
      const found = await readAny(nats, bucketStream(bucket), { from: revision + 1, limit })
      const entries = found.map(
        ({ at, data, seq, subject }): Written => ({
          key: subject.slice(prefix.length),
          text: textOf(data),
          revision: seq,
          at
        })
      )
      return { entries, areMore: (found.at(-1)?.pending ?? 0) > 0 }
    })
  )

/**
 * Passes every entry that a wildcard matches to `see`, runs `complete`, and then passes every
 * change. An entry may come twice; one that is removed is not announced. Fails when changes may be
 * missing: begin anew then.
 */
export const followEntries = Effect.fnUntraced(function* <K extends string>(
  bucket: BucketOf<K>,
  only: K,
  see: (key: string, value: ValueOf<K>) => void,
  complete: () => void
) {
  const { changes, revision } = yield* Buckets
  const after = yield* revision(bucket)
  const pass = (key: string, text: string) => seeValue(key, text, see)
  yield* eachStored(bucket, pass, only)
  complete()
  return yield* changes(bucket, after, (key, _, text) => pass(key, text), only)
})
