// How many bytes each stream may hold: decides what a start asks of the server. Pure.
import { bucketNames, bucketStream, buckets } from "#streams/buckets.ts"
import { allStreams } from "#streams/index.ts"

/** Step between two shares that are tried: at most a quarter of the room stays unused. */
const step = 3 / 4
/** 233 MiB for all streams and buckets. */
const shareMin = 1 / 64

/** Shares of the declared sizes in which new streams are tried, from all down to the least. */
export const shares: ReadonlyArray<number> = [
  ...Array.from({ length: 15 }, (_, n) => step ** n).filter((share) => share > shareMin),
  shareMin
]

/** Declared bytes of every stream and bucket, by the name of the stream. */
export const declaredBytes: Readonly<Record<string, number>> = Object.fromEntries([
  ...allStreams.map(({ maxBytes, name }) => [name, maxBytes] as const),
  ...bucketNames.map((bucket) => [bucketStream(bucket), buckets[bucket].maxBytes] as const)
])

/**
 * Limit of a new stream. `named`: the limit that the operator set, which no share changes.
 */
export const newBytesMax = (stream: string, share: number, named?: number): number =>
  named ?? Math.floor(declaredBytes[stream]! * share)

/** Bytes that the server needs at least, with the limits that the operator set. */
export const leastBytes = (named: Readonly<Record<string, number>>): number =>
  Object.keys(declaredBytes).reduce(
    (sum, stream) => sum + newBytesMax(stream, shareMin, named[stream]),
    0
  )

export interface Existing {
  /** 0 or less: none. */
  readonly bytesMax: number
  readonly bytes: number
}

/**
 * Limit of a stream that exists: what the operator set, else the limit that it has. Never less than
 * the stream holds, as the server might delete messages to obey.
 */
export const existingBytesMax = ({ bytes, bytesMax }: Existing, named?: number): number =>
  named === undefined ? bytesMax : Math.max(named, bytes)

/**
 * Limit of a stream that was created a moment ago in a larger share, here or by another process
 * that starts. Processes only lower it, so that they end at the same size.
 */
export const loweredBytesMax = ({ bytes, bytesMax }: Existing, wanted: number): number =>
  bytesMax > 0 && bytesMax <= wanted ? bytesMax : Math.max(wanted, bytes)

/** Code of nats-server: above the limit of the account for one stream. */
export const streamTooLarge = 10122
/** Codes of nats-server: the storage of the account or server, or its limit for one stream. */
const noStorageCodes = [10002, 10028, 10047, streamTooLarge]
/** No server of the cluster takes a replica. The description says why. */
const noPeers = 10005

/** Whether the server refused a stream because it has too little storage left for it. */
export const isNoStorage = ({ code, message }: { code: number; message: string }): boolean =>
  noStorageCodes.includes(code) ||
  (code === noPeers && /insufficient storage/i.test(message) && !/offline/i.test(message))
