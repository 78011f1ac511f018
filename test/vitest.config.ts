// How the tests run: workers, timeouts, the folder for temporary files and the compile cache.
import { availableParallelism } from "node:os"
import { defineConfig } from "vitest/config"
import { LongestFirst } from "./support/longest-first.ts"

// Tests spend most of their time on waiting, and much CPU time on the start of processes. The cache
// makes the start of one that runs the sources about 40 % cheaper.
process.env["NODE_COMPILE_CACHE"] ??= `${process.cwd()}/node_modules/.cache/node`

// Only a nats-server may be fetched through a proxy of this machine.
process.env["NO_PROXY"] = ["localhost,127.0.0.1", process.env["NO_PROXY"] ?? ""].join(",")

// Many small nats-servers share the machine. With one processor each, they take 30 % less CPU time:
// their threads look for work in vain less often.
process.env["GOMAXPROCS"] ??= "1"

/** One worker and what it starts take about 500 MB. */
const workersMax = 12

export default defineConfig({
  test: {
    globalSetup: [
      "browser-files",
      "bundle",
      "no-warnings",
      "no-leftovers",
      "nats-server-first"
    ].map((name) => `test/support/${name}.ts`),
    // A worker that runs several files imports Effect and the sources once: 0.5 s of CPU per file.
    isolate: false,
    sequence: { sequencer: LongestFirst },
    maxWorkers: Math.min(3 * availableParallelism(), workersMax),
    // The first test may fetch a nats-server or pull an image.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // The default of a second is short for a busy machine that is to print a line.
    expect: { poll: { timeout: 20_000 } }
  }
})
