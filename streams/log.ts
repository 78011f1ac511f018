// LOG: accepted commands and facts. It is the truth: kept for ever, audited, and everything else is rebuilt from it.
import type { StreamSpec } from "./spec.ts"
import { filters } from "./subjects.ts"

export const log = {
  name: "BELLCAST_LOG",
  subjects: ["bellcast.cmd.>", "bellcast.evt.>"],
  maxAgeMillis: 0,
  // About 6 million commands of 0.6 KB. Full means refused (discard new), never silently forgotten.
  maxBytes: 4 * 1024 ** 3,
  // A subscription command carries the largest body the gateway accepts (16 KiB) and its envelope.
  maxMessageBytes: 32 * 1024,
  // The life of an Idempotency-Key. Only broadcasts carry one: the window costs 0.15-0.3 KB of server memory an id.
  duplicateWindowMillis: 60 * 60_000,
  denyPurge: true,
  consumers: {
    planner: {
      name: "planner",
      filters: [filters.broadcasts],
      ackWaitMillis: 15_000,
      maxDeliver: -1,
      // Sixteen busy processes.
      maxAckPending: 2_048
    }
  }
} as const satisfies StreamSpec
