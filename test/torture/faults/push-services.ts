// Faults of push services: each origin of the rig behaves badly for a while.
import type { Behaviour } from "../push/behaviour.ts"
import { well } from "../push/behaviour.ts"
import type { Origin } from "../push/origin.ts"
import type { Random } from "../random.ts"
import type { Fault } from "./fault.ts"

interface Kind {
  readonly name: string
  readonly only?: Origin["protocol"]
  readonly short?: boolean
  readonly seconds: readonly [number, number]
  readonly behaviour: (random: Random) => Behaviour
}

const kinds: ReadonlyArray<Kind> = [
  {
    name: "push service slow",
    seconds: [5, 15],
    behaviour: (random) => ({ kind: "slow", millis: random.between(500, 3_000) })
  },
  {
    name: "push service silent",
    seconds: [6, 14],
    behaviour: () => ({ kind: "silent" })
  },
  {
    name: "push service: 429 with Retry-After",
    short: true,
    seconds: [3, 8],
    behaviour: (random) => ({ kind: "throttling", seconds: random.between(1, 3) })
  },
  {
    name: "push service: 410 in masses",
    seconds: [2, 4],
    behaviour: () => ({ kind: "gone" })
  },
  {
    name: "push service: 5xx",
    short: true,
    seconds: [4, 10],
    behaviour: (random) => ({ kind: "failing", status: random.pick([500, 502, 503, 504]) })
  },
  {
    name: "push service refuses payloads",
    seconds: [3, 8],
    behaviour: () => ({ kind: "failing", status: 413 })
  },
  {
    name: "push service closes in mid-answer",
    short: true,
    seconds: [3, 8],
    behaviour: () => ({ kind: "cutting" })
  },
  {
    name: "push service: HTTP/2 GOAWAY",
    only: "h2",
    short: true,
    seconds: [8, 15],
    behaviour: (random) => ({ kind: "leaving", streams: random.between(5, 60) })
  },
  {
    name: "push service down",
    seconds: [4, 12],
    behaviour: () => ({ kind: "down" })
  }
]

/** One fault for each kind; the seed chooses the origin. */
export const pushServiceFaults = (origins: ReadonlyArray<Origin>): ReadonlyArray<Fault> =>
  kinds.map(({ behaviour: make, name, only, seconds: [least, most], short = false }) => ({
    name,
    nodes: [1, 3],
    short,
    plan: (random, _, secondsMax) => {
      const fitting = origins.filter(({ protocol }) => only === undefined || protocol === only)
      const origin = random.pick(fitting)
      const behaviour = make(random)
      const seconds = Math.min(secondsMax, random.between(least, most))
      const { kind, ...detail } = behaviour
      const numbers = Object.entries(detail).map(([key, value]) => ` ${key} ${value}`)
      return {
        text: `${origin.name} ${kind}${numbers.join("")} for ${seconds} s`,
        seconds,
        holds: [origin.name],
        begin: async () => {
          origin.behave(behaviour)
          return { mayRepeat: [], end: async () => origin.behave(well) }
        }
      }
    }
  }))
