// An operator who sends broadcasts of the cycle before again, to those whom they did not reach; at
// times by two requests at the same moment, of which one must find it done.
import { setTimeout as sleep } from "node:timers/promises"
import { operator } from "../fleet/users.ts"
import {
  againOf,
  type Broadcast,
  type Model,
  namesUsers,
  payloadOf,
  type Recipients
} from "../model/model.ts"
import type { Recorded, RecordedBroadcast } from "../model/recorded.ts"
import type { Random } from "../random.ts"
import type { Gateways } from "./gateways.ts"
import type { Stop } from "./states.ts"

/** Redrives one broadcast, if there is one to redrive. */
export type Redrive = () => Promise<void>

const pauseMillis = 300
/** Reasons that no fault explains, as the rig has read that pushes were given up. */
const wrong = new Set(["nobody", "forgotten", "rejected"])

/** The pushes that were given up, by the names of their subscriptions. */
const undeliveredOf = ({ pushes }: RecordedBroadcast): ReadonlySet<string> => {
  const given = [...pushes].filter(([, { last }]) => ["dead", "expired"].includes(last.fate))
  return new Set(given.map(([key]) => key))
}

/** An erasure deletes the broadcasts that name its user alone. */
export const isLetterToErased = ({ channels, strangers, users }: Recipients): boolean => {
  const [only, ...others] = users
  const isAlone = channels.length + others.length + strangers === 0
  return isAlone && only?.erased !== undefined
}

export const makeRedrive = (
  model: Model,
  recorded: Recorded,
  gateways: Gateways,
  random: Random,
  /** The cycle under way. */
  cycle: () => number,
  stopSome: Stop
): Redrive => {
  /** Ids of broadcasts that were sent again. */
  const done = new Set<number>()

  const candidates = () =>
    [...recorded.broadcasts.values()].flatMap((one) => {
      const former = model.broadcasts.get(one.marker ?? "")
      // WORK has outcomes of the cycle before, and none of earlier ones.
      if (former === undefined || former.cycle !== cycle() - 1 || done.has(one.id)) return []
      if (isLetterToErased(former)) return []
      const undelivered = undeliveredOf(one)
      return undelivered.size === 0 ? [] : [{ id: one.id, former, undelivered }]
    })

  /** Repeats the request until it is done. Returns the id of the new broadcast. */
  const ask = async (id: number): Promise<number> => {
    const asked = { method: "POST", path: `/broadcasts/${id}/redrive`, user: operator }
    while (true) {
      const { body, location, status } = await gateways.once(asked, [202])
      if (status === 202) return Number(location!.split("/").at(-1))
      const { broadcast, reason } = body?.details ?? {}
      if (reason === "redriven") return Number(broadcast)
      if (wrong.has(reason)) throw new Error(`a redrive of ${id} is refused: ${reason}`)
      await sleep(pauseMillis)
    }
  }

  return async () => {
    const found = candidates()
    if (found.length === 0) return
    const { former, id, undelivered } = random.pick(found)
    done.add(id)
    const { channels, except, exceptedStrangers, strangers, terms, users } = former
    const marker = againOf(former.marker)
    const again: Broadcast = {
      ...{ marker, channels, users, except, strangers, exceptedStrangers, undelivered, terms },
      via: "redrive",
      cycle: cycle(),
      startedAt: performance.now(),
      isScheduled: false
    }
    model.broadcasts.set(marker, again)
    model.latest.set(payloadOf(marker), marker)
    const requests = Array.from({ length: random.chance(0.3) ? 2 : 1 }, () => ask(id))
    const ids = await Promise.all(requests)
    again.id = ids[0]!
    again.ackedAt = performance.now()
    if (new Set(ids).size > 1) model.wrong.push(`${id} was sent again as ${ids.join(" and ")}`)
    // Its publisher has no right to all users.
    if (!namesUsers(again)) await stopSome(again)
  }
}
