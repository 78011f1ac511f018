// The load of a cycle: broadcasts and changes of the audience, at a bounded rate, until it is told
// to stop. What is under way then is finished: a change is repeated until it is acknowledged.
import { setTimeout as sleep } from "node:timers/promises"
import type { Model } from "../model/model.ts"
import type { Random } from "../random.ts"
import type { Changes } from "./changes.ts"
import type { Erase } from "./erasures.ts"
import type { Visit } from "./guests.ts"
import type { Publish } from "./publish.ts"
import type { Redrive } from "./redrives.ts"

export interface Load {
  /** Changes and publishes under way. */
  readonly pending: () => number
  /** Begins no more; publishes without an acknowledgement give up after this. */
  readonly stop: () => void
}

export interface LoadOptions {
  readonly model: Model
  readonly changes: Changes
  readonly publish: Publish
  readonly guests: Visit
  readonly redrive: Redrive
  /** Undefined: an earlier commit may know no erasure. */
  readonly erase: Erase | undefined
  readonly random: Random
  /** Milliseconds between broadcasts, at least and at most. */
  readonly broadcastMillis: readonly [number, number]
  readonly changeMillis: readonly [number, number]
}

/** Of each kind at once: more would only wait for the same fault. */
const underWayMax = 20
/** Milliseconds between guests: each takes two commands. */
const guestMillis = [8_000, 14_000] as const
const redriveMillis = [2_000, 6_000] as const
const eraseMillis = [9_000, 16_000] as const
/** A broadcast whose acknowledgement has not come by then stays unknown. */
const giveUpMillis = 30_000

export const startLoad = (options: LoadOptions): Load => {
  const { broadcastMillis, changeMillis, changes, erase, guests, model, publish, random, redrive } =
    options
  const stopping = new AbortController()
  const givingUp = new AbortController()
  let pending = 0

  const every = async (
    [least, most]: readonly [number, number],
    mine: Random,
    act: () => Promise<void>
  ) => {
    let underWay = 0
    while (!stopping.signal.aborted) {
      if (underWay < underWayMax) {
        underWay++
        pending++
        void act()
          .catch((error) => model.wrong.push(`the rig: ${error}`))
          .finally(() => {
            underWay--
            pending--
          })
      }
      await sleep(mine.between(least, most), undefined, { signal: stopping.signal }).catch(() => {})
    }
  }

  // The first channel has nearly everybody, and gets a third of the broadcasts.
  const channels = random.fork("channels")
  const channel = () =>
    channels.chance(0.35) ? model.channels[0]! : channels.pick(model.channels.slice(1))
  void every(broadcastMillis, random.fork("broadcasts"), () => publish(channel(), givingUp.signal))
  void every(changeMillis, random.fork("changes"), changes.churn)
  void every(guestMillis, random.fork("guests"), () => guests(givingUp.signal))
  void every(redriveMillis, random.fork("redrives"), redrive)
  if (erase !== undefined) void every(eraseMillis, random.fork("erasures"), erase)

  return {
    pending: () => pending,
    stop: () => {
      stopping.abort()
      setTimeout(() => givingUp.abort(), giveUpMillis).unref()
    }
  }
}
