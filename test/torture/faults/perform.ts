// Carries out a schedule: begins and ends each fault at its time, and counts whose pushes may be
// sent again.
import { setTimeout as sleep } from "node:timers/promises"
import type { Scheduled } from "../schedule.ts"
import type { Context, MayRepeat, Ongoing } from "./fault.ts"

export interface Performed {
  /** How often the unrecorded pushes of a process may have been sent again. */
  readonly repeats: number
  readonly failures: ReadonlyArray<string>
}

/** Resolves when the last fault has ended. */
export const perform = async (
  schedule: ReadonlyArray<Scheduled>,
  context: Context
): Promise<Performed> => {
  const start = performance.now()
  const failures: Array<string> = []
  const delivering = context.fleet
    .filter(({ roles }) => roles.includes("delivery"))
    .map(({ name }) => name)
  const count = (mayRepeat: MayRepeat) =>
    mayRepeat === "all"
      ? delivering.length
      : mayRepeat.filter((name) => delivering.includes(name)).length
  const stamp = () => `+${((performance.now() - start) / 1000).toFixed(1).padStart(5)} s`
  let repeats = 0

  const running: Array<{ readonly holds: ReadonlyArray<string>; readonly ended: Promise<void> }> =
    []

  /** On a slow machine an earlier fault may act for longer than the schedule says. */
  const isFree = (holds: ReadonlyArray<string>) =>
    Promise.all(
      running.flatMap((one) => (one.holds.some((name) => holds.includes(name)) ? [one.ended] : []))
    )

  const one = async ({ at, fault, planned }: Scheduled) => {
    await sleep(at * 1000 - (performance.now() - start))
    await isFree(planned.holds)
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    running.push({ holds: planned.holds, ended })
    await act(fault, planned)
    end()
  }

  const act = async (fault: Scheduled["fault"], planned: Scheduled["planned"]) => {
    context.say(`${stamp()} ${fault.name}: ${planned.text}`)
    let ongoing: Ongoing | undefined
    try {
      ongoing = await planned.begin(context)
      repeats += count(ongoing.mayRepeat)
      await sleep(planned.seconds * 1000)
      await ongoing.end()
      context.say(`${stamp()} over: ${fault.name}`)
    } catch (error) {
      failures.push(`${fault.name}: ${error}`)
      await ongoing?.end()
    }
  }

  await Promise.all(schedule.map(one))
  return { repeats, failures }
}
