// A process sees the clock that it is given, and its timers keep their pace.
import { spawn } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { onTestFinished, test } from "vitest"
import { Clock } from "./clock.ts"
import { locateLibfaketime } from "./libfaketime.ts"

/** Prints its clock and its monotonic clock ten times a second. */
const program = `setInterval(() => console.log(Date.now(), performance.now()), 100)`

interface Reading {
  readonly offsetSeconds: number
  readonly monotonicMillis: number
}

test("the clock jumps while the process runs; timers do not", async ({ expect, skip }) => {
  if ((await locateLibfaketime()) === undefined) skip("no libfaketime")
  const folder = await mkdtemp(join(tmpdir(), "torture-clock-"))
  const clock = await Clock.make(join(folder, "clock"), 3_600)
  const child = spawn(process.execPath, ["-e", program], {
    env: { ...process.env, ...clock.env },
    stdio: ["ignore", "pipe", "inherit"]
  })
  onTestFinished(async () => {
    child.kill("SIGKILL")
    await Clock.forget(child.pid!)
    await rm(folder, { recursive: true, force: true })
  })
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const reach = async (offsetSeconds: number): Promise<Reading> => {
    while (true) {
      const { value, done } = await lines.next()
      if (done) throw new Error("the process ended")
      const [wall, monotonicMillis] = value.split(" ").map(Number) as [number, number]
      const reading = { offsetSeconds: Math.round((wall - Date.now()) / 1000), monotonicMillis }
      if (reading.offsetSeconds === offsetSeconds) return reading
    }
  }
  const first = await reach(3_600)
  await clock.set(-7_200)
  const second = await reach(-7_200)
  expect(second.monotonicMillis - first.monotonicMillis).toBeLessThan(5_000)
  await clock.set(0)
  await reach(0)
})
