// The messages between a process and its children, over the channel that Node.js makes. Both run
// the same version, so the messages have no numbers.
import * as Context from "effect/Context"
import * as Metric from "effect/Metric"
import type { Series } from "#telemetry/whole-metrics.ts"
import type { TokenRequest, TokenResponse } from "./group.ts"
import type { Activity } from "./processes.ts"

/** A message of a child. */
export type FromChild =
  | { readonly kind: "report"; readonly series: ReadonlyArray<Series>; readonly activity: Activity }
  | { readonly kind: "token"; readonly id: number; readonly request: TokenRequest }

/** A message of a parent. */
export interface FromParent {
  readonly kind: "token"
  readonly id: number
  readonly response: TokenResponse
}

/**
 * The argument of a child: its number, of how many processes, and the name of their group. The
 * parent is the first.
 */
const argument = /^--delivery-process=(\d+)\/(\d+)\/([\w-]+)$/

export const argumentOf = ({ group, number, processes }: ChildPlace): string =>
  `--delivery-process=${number}/${processes}/${group}`

export interface ChildPlace {
  readonly number: number
  readonly processes: number
  /** Names the group among those of other machines. */
  readonly group: string
}

/** The place of this process; undefined: it has no parent. */
export const placeOf = (args: ReadonlyArray<string>): ChildPlace | undefined => {
  if (process.send === undefined) return undefined
  for (const arg of args) {
    const [, number, processes, group] = argument.exec(arg) ?? []
    if (group !== undefined) return { number: Number(number), processes: Number(processes), group }
  }
  return undefined
}

/** How lines of the log name a child; undefined: they are of a process without a parent. */
export const nameOf = (place: ChildPlace | undefined): string | undefined =>
  place && `delivery-${place.number}`

/** The event loop and the attempts of this process from one reading to the next. */
export const makeActivity = (): (() => Activity) => {
  let loop = performance.eventLoopUtilization()
  let attempts = 0
  return () => {
    const now = performance.eventLoopUtilization()
    const counted = attemptsSoFar()
    const activity = {
      busy: performance.eventLoopUtilization(now, loop).utilization,
      attempts: counted - attempts
    }
    loop = now
    attempts = counted
    return activity
  }
}

const context = Context.empty()

/** Reads no other metric: to read some of them takes time, or begins their next window. */
const attemptsSoFar = (): number => {
  let sum = 0
  for (const { hooks, id } of Context.get(context, Metric.MetricRegistry).values())
    if (id === "bellcast_push_attempts_total") sum += Number(hooks.get(context).count)
  return sum
}
