// All streams and consumers in the order of the data flow. `make streams` prints them with their
// state, with followers and buckets.
import { bucketNames, bucketStream } from "./buckets.ts"
import { log } from "./log.ts"
import type { StreamSpec } from "./spec.ts"
import { work } from "./work.ts"

export const streams = { log, work } as const
/**
 * The form of what streams and buckets store: another number where a version cannot read what
 * earlier versions stored. A start refuses another form of streams, and a later one of buckets. It
 * makes buckets of an earlier form again, so each number of theirs is higher than the one before.
 */
export const storedForm = { streams: "3", buckets: "10" } as const

export const allStreams: ReadonlyArray<StreamSpec> = [log, work]
/** All durable consumers, each with its stream. */
export const consumers = allStreams.flatMap((stream) =>
  Object.values(stream.consumers).map((consumer) => ({ stream, consumer }))
)
/** The names of all streams, those behind buckets too. */
export const streamNames: ReadonlyArray<string> = [
  ...allStreams.map(({ name }) => name),
  ...bucketNames.map(bucketStream)
]
