// Who reads a stream from end to end, in order, to keep a projection. A durable consumer cannot do that: what a crashed client had in hand
// comes back after newer messages. A follower holds a lease, reads in stream order from its checkpoint, and folding twice changes nothing.
import { filters } from "./subjects.ts"

export const followers = {
  /**
   * LOG -> subscriptions, registrations, channels, permissions. Its checkpoint is the `meta` entry of the bucket `subscriptions`. It passes over
   * broadcasts, but must see them: the planner waits until everything before a broadcast is projected.
   */
  projector: {
    stream: "log",
    filters: [filters.commands],
    checkpoint: "subscriptions",
    pauseMillis: 0
  },
  /** WORK -> broadcasts, channels. Its checkpoint is the `meta` entry of the bucket `broadcasts`. */
  tally: {
    stream: "work",
    filters: [filters.plans, filters.outcomes],
    checkpoint: "broadcasts",
    pauseMillis: 100
  }
} as const

export type FollowerName = keyof typeof followers

// `pauseMillis` is how long a follower lets messages gather before the next batch: each batch costs the tally a read of every broadcast that it does not remember.

/** A lease ends this long after its holder was last heard of: how long writes wait when the projector is killed. The server's TTLs tick in seconds. */
export const leaseSeconds = 2
