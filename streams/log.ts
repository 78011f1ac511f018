// LOG: accepted commands and facts. The server never deletes them; every bucket but `cache` can be
// rebuilt from LOG and WORK.
import type { StreamSpec } from "./spec.ts"
import { filters } from "./subjects.ts"

export const log = {
  name: "BELLCAST_LOG",
  subjects: ["bellcast.cmd.>", "bellcast.evt.>"],
  maxAgeMillis: 0,
  // About 6 million commands of 0.6 KB. A full stream refuses new messages and deletes none.
  maxBytes: 4 * 1024 ** 3,
  // A subscription command carries the largest body the gateway accepts (16 KiB) and its envelope.
  maxMessageBytes: 32 * 1024,
  // The lifetime of an Idempotency-Key, which only broadcasts have: each id in the window costs
  // 0.15 to 0.3 KB of server memory.
  duplicateWindowMillis: 60 * 60_000,
  denyPurge: true,
  consumers: {
    planner: {
      name: "planner",
      // A broadcast that was accepted earlier is planned when it starts.
      filters: [filters.broadcasts, filters.states],
      ackWaitMillis: 15_000,
      maxDeliver: -1,
      // Enough for 16 processes at 128 broadcasts each.
      maxAckPending: 2_048
    },
    states: {
      name: "states",
      filters: [filters.states],
      ackWaitMillis: 15_000,
      maxDeliver: -1,
      // Changes wait here, as naks with a delay: a cancellation until the broadcast is finished, a
      // pause until its life is over.
      maxAckPending: -1
    }
  }
} as const satisfies StreamSpec
