// What a check is, and what it looks at: the rig's model, what the service recorded, and the fleet,
// after a cycle has healed.
import { setTimeout as sleep } from "node:timers/promises"
import type { FleetMember } from "../fleet/member.ts"
import type { Gateways } from "../load/gateways.ts"
import type { Broadcast, Model } from "../model/model.ts"
import type { Recorded } from "../model/recorded.ts"
import type { RigClient } from "../nats/client.ts"
import type { PushServices } from "../push/services.ts"
import type { Random } from "../random.ts"

export interface Look {
  readonly cycle: number
  readonly model: Model
  readonly recorded: Recorded
  readonly client: RigClient
  readonly gateways: Gateways
  readonly fleet: ReadonlyArray<FleetMember>
  readonly push: PushServices
  readonly random: Random
  readonly natsUrl: string
  /** Pids of the nats-servers, by name. */
  readonly serverPids: Readonly<Record<string, number | undefined>>
  /** Pushes that may be sent twice because of the faults of this cycle. */
  readonly duplicatesMax: number
  readonly figures: Figures
}

/** Figures of a cycle for its line in the results; checks fill them in. */
export interface Figures {
  acknowledged: number
  pushes: number
  missed: number
  duplicates: number
  endedOtherwise: number
  /** Redrives, which are among the acknowledged. */
  redriven: number
  /** Broadcasts with more pushes than their rate allows at once. */
  paced: number
  /** Most attempts in 10 s, in percent of the rate. */
  fastest: number
  /** Pauses of broadcasts by themselves. */
  ownPauses: number
  /** Old messages that the service has deleted from LOG. */
  trimmed: number
  /** Users who were erased. */
  erased: number
  rssMax: number
  descriptorsMax: number
}

export interface Check {
  readonly name: string
  /** One line for each violation, without secrets. */
  readonly run: (look: Look) => Promise<ReadonlyArray<string>>
}

/** Broadcasts published in this cycle. */
export const broadcastsOf = ({ cycle, model }: Look): ReadonlyArray<Broadcast> =>
  [...model.broadcasts.values()].filter((one) => one.cycle === cycle)

/** The first few of many violations, and how many there are. */
export const few = (violations: ReadonlyArray<string>, max = 5): ReadonlyArray<string> =>
  violations.length <= max
    ? violations
    : [...violations.slice(0, max), `... ${violations.length} in all`]

/** Projections, and replicas of a cluster, may be behind for a moment. */
const patienceMillis = 20_000

/** Repeats a check until it finds nothing, for 20 s at most unless said otherwise. */
export const patient = ({ name, run }: Check, millis = patienceMillis): Check => ({
  name,
  run: async (look) => {
    const deadline = performance.now() + millis
    while (true) {
      const violations = await run(look)
      if (violations.length === 0 || performance.now() > deadline) return violations
      await sleep(1_000)
    }
  }
})
