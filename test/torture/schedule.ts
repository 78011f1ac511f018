// The schedule of a cycle: which faults begin when, drawn from the seed alone.
import type { Fault, Planned, Shape } from "./faults/fault.ts"
import type { Random } from "./random.ts"

export interface Scheduled {
  readonly fault: Fault
  readonly planned: Planned
  /** Seconds after the load began. */
  readonly at: number
}

export interface Window {
  /** Seconds during which faults may be under way. */
  readonly seconds: number
  /** Faults of a cycle, at least and at most. */
  readonly faults: readonly [number, number]
}

/** The first seconds are calm, so that there is something under way to be hit. */
const calmSeconds = 3
/** A fault that acts for longer than planned, such as a rolling restart, holds for so long. */
const holdSecondsMin = 8

const isBeside = (one: Scheduled, at: number, planned: Planned): boolean => {
  const isShared = planned.holds.some((name) => one.planned.holds.includes(name))
  const endOf = (start: number, { seconds }: Planned) => start + Math.max(seconds, holdSecondsMin)
  return !isShared || at >= endOf(one.at, one.planned) || one.at >= endOf(at, planned)
}

const isSpecial = ({ store }: Fault) => store !== undefined

/** Faults at random times, several at once where they do not need the same thing for themselves. */
export const planCycle = (
  random: Random,
  faults: ReadonlyArray<Fault>,
  shape: Shape,
  { faults: [least, most], seconds }: Window
): ReadonlyArray<Scheduled> => {
  const wanted = random.between(least, most)
  const result: Array<Scheduled> = []
  // What a cycle has this kind of storage for comes first, so that it is not crowded out.
  const [special, usual] = [faults.filter(isSpecial), faults.filter((one) => !isSpecial(one))]
  const order = [...random.shuffle(special), ...random.shuffle(usual)]
  for (let tries = 0; result.length < wanted && tries < 4 * wanted; tries++) {
    const fault = order[tries % order.length]
    if (fault === undefined) break
    const at = random.between(calmSeconds, Math.max(calmSeconds, seconds - 8))
    const planned = fault.plan(random, shape, seconds - at)
    if (result.every((one) => isBeside(one, at, planned))) result.push({ fault, planned, at })
  }
  return result.sort((one, other) => one.at - other.at)
}
