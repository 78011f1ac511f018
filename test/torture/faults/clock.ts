// A clock of its own for one process of the service: set forward or back, it jumps while the
// process runs. Timers keep their pace, as on a machine whose clock is set. nats-server is a Go
// program, which libfaketime does not reach.
import { rename, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import type { Fault, Member, Ongoing } from "./fault.ts"
import { locateLibfaketime } from "./libfaketime.ts"

/** How long a process may go on with the former offset. */
const cacheSeconds = 1

export class Clock {
  readonly #file: string
  /** For the start of the process that this clock is for. */
  readonly env: Readonly<Record<string, string>>

  private constructor(file: string, library: string) {
    this.#file = file
    this.env = {
      LD_PRELOAD: library,
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_CACHE_DURATION: String(cacheSeconds)
    }
  }

  /** `file`: a path for the offset. Rejects when there is no libfaketime. */
  static async make(file: string, offsetSeconds: number): Promise<Clock> {
    const library = await locateLibfaketime()
    if (library === undefined) throw new Error("no libfaketime")
    const clock = new Clock(file, library)
    await clock.set(offsetSeconds)
    return clock
  }

  /** The process sees true time plus this within a second. */
  async set(offsetSeconds: number): Promise<void> {
    // Renamed into place: the process may read at any moment.
    await writeFile(`${this.#file}.new`, `${offsetSeconds < 0 ? "" : "+"}${offsetSeconds}\n`)
    await rename(`${this.#file}.new`, this.#file)
  }

  /** Removes the shared memory of a process that started with `env`: SIGKILL leaves it behind. */
  static async forget(pid: number): Promise<void> {
    for (const name of [`faketime_shm_${pid}`, `sem.faketime_sem_${pid}`])
      await rm(join("/dev/shm", name), { force: true })
  }
}

/** From less than any lease to more than any wait. */
const offsetsSeconds = [-3_600, -600, -60, -5, 5, 60, 600, 3_600]

const begin = async (
  member: Member,
  file: string,
  [first, second]: readonly [number, number],
  secondsUntilJump: number
): Promise<Ongoing> => {
  const clock = await Clock.make(file, first)
  await member.kill()
  await member.start(clock.env)
  const { pid } = member
  const jump = setTimeout(() => void clock.set(second).catch(() => {}), secondsUntilJump * 1_000)
  return {
    mayRepeat: [member.name],
    end: async () => {
      clearTimeout(jump)
      // The clock jumps once more. The process keeps running: a restart would hide what it keeps.
      await clock.set(0).catch(() => {})
      if (pid !== undefined) await Clock.forget(pid).catch(() => {})
    }
  }
}

const clockSet: Fault = {
  name: "clock of a process set forward and back",
  nodes: [1, 3],
  short: true,
  unavailable: async () =>
    (await locateLibfaketime()) === undefined
      ? "no libfaketime, and apt-get cannot fetch it: install the package libfaketime"
      : undefined,
  plan: (random, { members }, secondsMax) => {
    const { name } = random.pick(members)
    const offsets = [random.pick(offsetsSeconds), random.pick(offsetsSeconds)] as const
    const seconds = Math.min(secondsMax, random.between(10, 40))
    return {
      text: `clock of ${name} at ${offsets[0]} s, at ${offsets[1]} s after half of the time`,
      holds: [name],
      seconds,
      begin: (context) => {
        const member = context.fleet.find((one) => one.name === name)!
        return begin(member, join(context.folder, `clock-${name}`), offsets, seconds / 2)
      }
    }
  }
}

export const clockFaults: ReadonlyArray<Fault> = [clockSet]
