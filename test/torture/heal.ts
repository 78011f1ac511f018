// Waits until a cycle has healed: everything runs, everything that was asked for is acknowledged,
// and every broadcast in LOG has come to its end.
import { setTimeout as sleep } from "node:timers/promises"
import type { NatsServers } from "./faults/fault.ts"
import type { FleetMember } from "./fleet/member.ts"
import type { Model } from "./model/model.ts"
import type { Recorded, RecordedBroadcast } from "./model/recorded.ts"

export interface Healing {
  readonly fleet: ReadonlyArray<FleetMember>
  readonly nats: NatsServers
  readonly recorded: Recorded
  readonly model: Model
  /** The load's changes and publishes that are not acknowledged yet. */
  readonly pending: () => number
}

/** A planned broadcast has no pushes yet: only the fact in LOG says that none will come. */
const isOver = (
  { accepted, id, planned, pushes, rejected }: RecordedBroadcast,
  finished: ReadonlySet<number>
): boolean => {
  if (rejected) return true
  if (!planned || !finished.has(id) || pushes.size < accepted) return false
  for (const { ends } of pushes.values()) if (ends === 0) return false
  return true
}

/** LOG is read at least so often, also while something is not well. */
const readMillis = 60_000

/** What is not well yet; empty: healed. */
const ailments = async ({
  fleet,
  model,
  nats,
  pending,
  recorded
}: Healing): Promise<Array<string>> => {
  // A cycle may take longer to heal than the history is.
  if (recorded.gapMillis() > readMillis) await recorded.update().catch(() => {})
  const down = fleet.filter((member) => !member.isReady())
  if (down.length > 0)
    return down.map((member) => `not ready: ${member.name} ${member.lastError()}`)
  if (!(await nats.isHealthy().catch(() => false))) return ["NATS is not healthy"]
  if (pending() > 0) return [`${pending()} requests are not acknowledged`]
  await recorded.update()
  const acknowledged = [...model.broadcasts.values()].flatMap(({ id }) => id ?? [])
  const unread = acknowledged.filter((id) => !recorded.broadcasts.has(id))
  if (unread.length > 0) return [`acknowledged, but not in LOG: ${unread.join(", ")}`]
  const open = [...recorded.broadcasts.values()].filter((one) => !isOver(one, recorded.finished))
  if (open.length === 0) return []
  const [first] = open
  const waiting = [...first!.pushes.values()].filter(({ ends }) => ends === 0)
  const reasons = [...new Set(waiting.map(({ last }) => last.reason))].slice(0, 3).join(", ")
  return [
    `${open.length} broadcasts are not over; ${first!.id}: planned ${first!.planned}, ` +
      `${waiting.length} of ${first!.accepted} retrying (${reasons})`
  ]
}

/** Grows with everything that comes to an end. */
const progressOf = ({ fleet, pending, recorded }: Healing): string => {
  let ends = 0
  for (const { planned, pushes } of recorded.broadcasts.values()) {
    ends += Number(planned)
    for (const push of pushes.values()) ends += push.ends
  }
  const ready = fleet.filter((member) => member.isReady()).length
  return `${ends} ends, ${ready} ready, ${pending()} pending`
}

export interface HealBounds {
  /** Without any progress for so long, a cycle counts as stuck. */
  readonly idleSecondsMax: number
  /** The longest that a cycle may take to heal, on a busy machine too. */
  readonly secondsMax: number
}

export interface Healed {
  readonly seconds: number
  /** What is still wrong; empty: healed. */
  readonly ailments: ReadonlyArray<string>
}

/** Resolves when all is well, or a bound is reached. */
export const heal = async (healing: Healing, bounds: HealBounds): Promise<Healed> => {
  const start = performance.now()
  const seconds = () => Math.round((performance.now() - start) / 100) / 10
  let progress = ""
  let progressAt = 0
  while (true) {
    const found = await ailments(healing).catch((error) => [String(error)])
    if (found.length === 0) return { seconds: seconds(), ailments: [] }
    const now = progressOf(healing)
    if (now !== progress) progressAt = seconds()
    progress = now
    const isStuck = seconds() - progressAt > bounds.idleSecondsMax
    if (isStuck || seconds() > bounds.secondsMax) return { seconds: seconds(), ailments: found }
    await sleep(500)
  }
}
