// What flows and what is kept, in the order data flows. `make streams` prints it.
import { buckets } from "./buckets.ts"
import { followers } from "./followers.ts"
import { log } from "./log.ts"
import { work } from "./work.ts"

export const streams = { log, work } as const
export const topology = {
  streams: [log, work],
  followers,
  buckets: Object.values(buckets)
} as const
