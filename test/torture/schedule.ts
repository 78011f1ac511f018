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

/**
 * Faults at random times, several at once where they do not need the same thing for themselves.
 * `first`: planned before the others, so that they are not crowded out.
 */
export const planCycle = (
  random: Random,
  first: ReadonlyArray<Fault>,
  faults: ReadonlyArray<Fault>,
  shape: Shape,
  { faults: [least, most], seconds }: Window
): ReadonlyArray<Scheduled> => {
  const wanted = random.between(least, most)
  const result: Array<Scheduled> = []
  const place = (fault: Fault): boolean => {
    const at = random.between(calmSeconds, Math.max(calmSeconds, seconds - 8))
    const planned = fault.plan(random, shape, seconds - at)
    const isPlaced = result.every((one) => isBeside(one, at, planned))
    if (isPlaced) result.push({ fault, planned, at })
    return isPlaced
  }
  for (const fault of first) for (let tries = 0; tries < 20 && !place(fault); tries++);
  const others = random.shuffle(faults.filter((one) => !first.includes(one)))
  for (let tries = 0; result.length < wanted && tries < 4 * wanted; tries++) {
    const fault = others[tries % others.length]
    if (fault !== undefined) place(fault)
  }
  return result.sort((one, other) => one.at - other.at)
}
