// All streams, consumers, followers and buckets in the order of the data flow. `make streams`
// prints them with their state.
import { buckets } from "./buckets.ts"
import { followers } from "./followers.ts"
import { log } from "./log.ts"
import { work } from "./work.ts"

export const streams = { log, work } as const
/**
 * The form of what streams and buckets store: another number where a version cannot read what
 * earlier versions stored. A start refuses another form; `bellcast rebuild` makes buckets anew.
 */
export const storedForm = { streams: "1", buckets: "2" } as const
export const topology = {
  streams: [log, work],
  followers,
  buckets: Object.values(buckets)
} as const
