// Plans the cycles of a run from its seed. A fault that this machine cannot have is planned all the
// same and left out afterwards, so that a seed means the same schedule everywhere.
import type { CyclePlan } from "./cycle.ts"
import type { Fault, Nodes, Shape, StoreKind } from "./faults/fault.ts"
import type { HealBounds } from "./heal.ts"
import type { Random } from "./random.ts"
import { planCycle } from "./schedule.ts"

/** The guard of a push service that calls everybody gone sends its first probe after a minute. */
const guardSeconds = 240
const idleSeconds = 60

const healBounds = (nodes: Nodes, faults: ReadonlyArray<string>): HealBounds => {
  const guarded = faults.some((name) => name.includes("410")) ? guardSeconds : 0
  return {
    idleSecondsMax: idleSeconds + guarded,
    secondsMax: (nodes === 1 ? 300 : 360) + guarded
  }
}

export interface Cast {
  readonly faults: ReadonlyArray<Fault>
  readonly stores: ReadonlyArray<StoreKind>
  /** What this machine cannot have. */
  readonly missing: ReadonlySet<Fault>
  /** In the first cycle, when the run began with an earlier commit. */
  readonly upgrade: Fault | undefined
}

export interface CyclePlanned {
  readonly plan: CyclePlan
  readonly store: StoreKind
  /** Of the faults. */
  readonly names: ReadonlyArray<string>
}

/** The run of CI has one of each: names that faults begin with. */
const shortKinds = [
  "process killed",
  "process frozen",
  "connections to NATS",
  "stream full",
  "push service"
] as const

/**
 * Found the subtlest defects, and left to chance they came in one of ten runs of ten minutes: so
 * the cycles have them in turn. The seed says which is first.
 */
const weighed = ["lease holder frozen", "WORK full while push services fail"] as const

/**
 * The faults that a cycle is for: those that need its storage and one of the weighed ones; in CI,
 * one of each kind.
 */
const firstOf = (
  random: Random,
  faults: ReadonlyArray<Fault>,
  isShort: boolean,
  turn: number
): ReadonlyArray<Fault> =>
  isShort
    ? shortKinds.map((kind) => random.pick(faults.filter(({ name }) => name.startsWith(kind))))
    : [
        ...faults.filter(({ name }) => name === weighed[turn % weighed.length]),
        ...random.shuffle(faults.filter(({ store }) => store !== undefined))
      ]

/** `seed`: the random numbers of the run. */
export const planOf = (
  seed: Random,
  cast: Cast,
  shape: Shape,
  isShort: boolean,
  cycle: number
): CyclePlanned => {
  const random = seed.fork(`cycle ${cycle}`)
  const store = cycle === 1 ? "plain" : random.pick(cast.stores)
  const window = isShort
    ? { seconds: 30, faults: [7, 7] as const }
    : { seconds: random.between(35, 45), faults: [4, 8] as const }
  const fitting = cast.faults.filter((fault) => fault.store === undefined || fault.store === store)
  const { missing, upgrade } = cast
  const turn = cycle + seed.fork("weighed").between(0, 1)
  const isUpgrade = cycle === 1 && upgrade !== undefined
  const wanted = isUpgrade
    ? [{ fault: upgrade, planned: upgrade.plan(random, shape, window.seconds), at: 4 }]
    : planCycle(random, firstOf(random, fitting, isShort, turn), fitting, shape, window)
  const schedule = wanted.filter(({ fault }) => !missing.has(fault))
  const names = schedule.map(({ fault }) => fault.name)
  const plan: CyclePlan = {
    schedule,
    seconds: window.seconds,
    healBounds: healBounds(shape.nodes, names),
    rebuilds: isShort || cycle % 3 === 0,
    watches: store !== "forgetful"
  }
  const isNeeded = schedule.some(({ fault }) => fault.store === store)
  return { plan, store: isNeeded ? store : "plain", names }
}
