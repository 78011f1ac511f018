// WORK: plans, jobs, outcomes, dead letters, and what operators looked at. They are many and
// expire, so LOG stays small and quick to replay.
import type { StreamSpec } from "./spec.ts"
import { filters } from "./subjects.ts"

const dayMillis = 24 * 60 * 60_000

export const work = {
  name: "BELLCAST_WORK",
  subjects: [
    "bellcast.plan.>",
    "bellcast.job.>",
    "bellcast.outcome.>",
    "bellcast.dead.>",
    "bellcast.look.>"
  ],
  // The longest TTL of a push is 28 days (the limit of FCM). One week more for audits.
  maxAgeMillis: 35 * dayMillis,
  maxBytes: 4 * 1024 ** 3,
  // An outcome lists up to 64 pushes of about 200 bytes.
  maxMessageBytes: 64 * 1024,
  // Bellcast does not rely on this window: each message has a unique subject and the expected
  // sequence 0, and that check never expires.
  duplicateWindowMillis: 2 * 60_000,
  denyPurge: false,
  consumers: {
    deliver: {
      name: "deliver",
      filters: [filters.shards],
      // How long the shards of a killed worker wait. A running worker reports progress every 5 s,
      // also when push services are slow.
      ackWaitMillis: 15_000,
      maxDeliver: -1,
      // Enough for 16 processes with the default of BELLCAST_SHARDS_IN_FLIGHT, and for the shards
      // of 15 large broadcasts that wait until LOG has room for what follows from their outcomes.
      maxAckPending: 65_536
    },
    // Shards of broadcasts with a rate. They wait for their turn for hours, so that those without
    // a rate would wait behind them.
    limited: {
      name: "limited",
      filters: [filters.limitedShards],
      ackWaitMillis: 15_000,
      maxDeliver: -1,
      maxAckPending: 65_536
    },
    retry: {
      name: "retry",
      filters: [filters.retries],
      ackWaitMillis: 15_000,
      maxDeliver: -1,
      // A push that waits for its next attempt is a nak with a delay and counts here: with a limit,
      // waiting pushes would block the others.
      maxAckPending: -1
    }
  }
} as const satisfies StreamSpec
