// Finds where a bucket of the server differs from the streams. Reads the entries of the server one
// after the other and looks each one up: neither side is ever in memory as a whole.
import * as Effect from "effect/Effect"
import type { DiskBuckets, TextEntry } from "#nats/kv/disk-buckets.ts"
import { eachStored } from "#nats/kv/entries.ts"
import { type BucketName, metaKey } from "#streams/buckets.ts"

/** An entry of the server that differs from what the streams say. */
export interface Different {
  readonly key: string
  /** Its text on the server. Empty: a client of NATS deleted it. */
  readonly text: string
  /** Its revision on the server. */
  readonly revision: number
  /** The value by the streams; undefined: they do not hold it. */
  readonly wanted: TextEntry | undefined
}

type Part = ReadonlyArray<TextEntry & { readonly key: string }>

export interface Compared {
  readonly bucket: BucketName
  /** The entry `meta` of the server; revision 0: there is none. */
  readonly meta: { readonly text: string | undefined; readonly revision: number }
  /**
   * Entries of the streams that the server lacks, or of which it has another text, in parts; not
   * `meta`. A part of equal entries is empty: a turn of the event loop fits between any two.
   */
  readonly unequal: () => Generator<Part, void>
}

/** Reads a bucket of the server as `eachStored` does. */
type Read = (
  bucket: BucketName,
  see: (key: string, text: string, revision: number) => void
) => ReturnType<typeof eachStored>

/**
 * Compares a bucket of the server with the folded one, and passes each entry of the server that
 * differs to `see`, but not `meta`, whose revisions cannot be equal.
 */
export const compareBucket = Effect.fnUntraced(function* (
  bucket: BucketName,
  folded: DiskBuckets,
  see: (different: Different) => void,
  read: Read = eachStored
) {
  const equal = new Marks(folded.last())
  let meta: Compared["meta"] = { text: undefined, revision: 0 }
  yield* read(bucket, (key, text, revision) => {
    if (key === metaKey) {
      meta = { text: text === "" ? undefined : text, revision }
      return
    }
    const wanted = folded.entry(bucket, key)
    if (wanted?.text !== text) see({ key, text, revision, wanted })
    else equal.add(wanted.revision)
  })
  const compared: Compared = {
    bucket,
    meta,
    unequal: () => unmarked(bucket, folded, equal)
  }
  return compared
})

/** Whether the server lacks an entry of the streams, or has another text of one. */
export const isUnequal = Effect.fnUntraced(function* ({ unequal }: Compared) {
  for (const part of unequal()) {
    if (part.length > 0) return true
    yield* Effect.yieldNow
  }
  return false
})

const unmarked = function* (bucket: BucketName, folded: DiskBuckets, marks: Marks) {
  for (let last = 0; ; ) {
    const part = folded.after(bucket, last)
    if (part.length === 0) return
    last = part.at(-1)!.revision
    yield part.filter(({ key, revision }) => key !== metaKey && !marks.has(revision))
  }
}

/** Marked numbers up to a highest one: a bit each. */
class Marks {
  readonly #bits: Uint8Array

  constructor(highest: number) {
    this.#bits = new Uint8Array(Math.floor(highest / 8) + 1)
  }

  add(number: number): void {
    this.#bits[number >> 3]! |= 1 << (number & 7)
  }

  has(number: number): boolean {
    return (this.#bits[number >> 3]! & (1 << (number & 7))) !== 0
  }
}
