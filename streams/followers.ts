// The followers: each reads a stream in order and maintains the buckets of a projection. A durable
// consumer cannot: it redelivers the messages of a crashed client after newer messages. A follower
// holds a lease and reads from its checkpoint. Applying a message twice changes nothing.
import { filters } from "./subjects.ts"

/** `pauseMillis`: how long a follower waits after a batch, so that messages gather. */
export const followers = {
  /**
   * LOG -> subscriptions, registrations, channels, permissions, drafts. Its checkpoint is the
   * `meta` entry of the bucket `subscriptions`. The projector reads broadcasts and their starts
   * too, without applying them: the planner waits until everything before them is projected.
   */
  projector: {
    stream: "log",
    filters: [filters.commands, filters.states],
    checkpoint: "subscriptions",
    pauseMillis: 0
  },
  /**
   * WORK -> broadcasts, channels. Its checkpoint is the `meta` entry of the bucket `broadcasts`.
   * The pause makes batches larger: for each batch, the tally reads every broadcast that its
   * write-back cache lacks.
   */
  tally: {
    stream: "work",
    filters: [filters.plans, filters.outcomes],
    checkpoint: "broadcasts",
    pauseMillis: 100
  }
} as const

export type FollowerName = keyof typeof followers
export const followerNames = Object.keys(followers) as ReadonlyArray<FollowerName>

/**
 * A lease ends this long after its holder renewed it last, or later where NATS takes long for a
 * write (src/nats/follower/lease.ts). Writes wait this long when the projector is killed.
 * nats-server takes whole seconds.
 */
export const leaseSeconds = 2
