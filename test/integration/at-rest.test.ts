// A process that has nothing to do.
import { readFile } from "node:fs/promises"
import { setTimeout as pause } from "node:timers/promises"
import { assert, it } from "vitest"
import { until } from "../support/client.ts"
import { sources } from "../support/service.ts"
import { useService } from "../support/use-service.ts"

const seconds = 6
const writesMax = 12
const mebibyte = 1024 ** 2

const shared = useService({ program: sources })

// The first: the service has just started.
it("has given back the memory that its start needed when it is ready", async () => {
  const text = await (await fetch(`${shared.service.metricsUrl()}/metrics`)).text()
  const [, total] = /^nodejs_heap_size_total_bytes (\d+)$/m.exec(text)!
  // 40 MiB; with the garbage of the start 100.
  assert.isBelow(Number(total), 64 * mebibyte)
})

it.skipIf(process.platform !== "linux")(
  "writes to its log and to NATS at most 12 times a second at rest",
  { timeout: 60_000 },
  async () => {
    const { service } = shared
    const writes = async () => {
      const io = await readFile(`/proc/${service.process.pid}/io`, "utf8")
      return Number(/syscw: (\d+)/.exec(io)?.[1])
    }
    const writesIn = async (span: number) => {
      const before = await writes()
      await pause(span * 1_000)
      return (await writes()) - before
    }
    // After its start the process works on for a while, longer on a slow machine.
    await until(
      () => writesIn(seconds),
      (count) => count / seconds <= writesMax,
      40_000
    )
  }
)
