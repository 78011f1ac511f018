// WORK: plans, jobs, outcomes and dead letters. High volume and short life, so that LOG stays small and quick to replay.
import type { StreamSpec } from "./spec.ts"
import { filters } from "./subjects.ts"

const dayMillis = 24 * 60 * 60_000

export const work = {
  name: "BELLCAST_WORK",
  subjects: ["bellcast.plan.>", "bellcast.job.>", "bellcast.outcome.>", "bellcast.dead.>"],
  // The longest TTL of a push is 28 days (FCM's limit); one week more to look at what happened.
  maxAgeMillis: 35 * dayMillis,
  maxBytes: 4 * 1024 ** 3,
  // An outcome lists up to 64 pushes of about 200 bytes.
  maxMessageBytes: 64 * 1024,
  // Not relied on: idempotence here is an expected sequence of 0 on a unique subject, which does not expire.
  duplicateWindowMillis: 2 * 60_000,
  denyPurge: false,
  consumers: {
    deliver: {
      name: "deliver",
      filters: [filters.shards],
      // How long a killed worker's shards lie idle. Living ones say "working" every 5 s, however slow the push services are.
      ackWaitMillis: 15_000,
      maxDeliver: -1,
      // Sixteen busy processes with the default of BELLCAST_SHARDS_IN_FLIGHT.
      maxAckPending: 2_048
    },
    retry: {
      name: "retry",
      filters: [filters.retries],
      ackWaitMillis: 15_000,
      maxDeliver: -1,
      // A push waiting for its next attempt is a nak with a delay, and those count as pending: a bound would stall the rest.
      maxAckPending: -1
    }
  }
} as const satisfies StreamSpec
