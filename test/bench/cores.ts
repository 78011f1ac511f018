// `make bench ARGS=cores`: pushes a second by the number of processes that deliver, the CPU that
// each process takes for 1,000 pushes, and the memory of each, at rest and at the highest. It
// prints and asserts nothing. BENCH_PROCESSES (default 1,2,4) are the numbers, BENCH_SIZES (default
// 10000,100000) the sizes of broadcasts, BENCH_ROUNDS (default 3) the repetitions. More processes
// than cores only share them.
import { readFileSync } from "node:fs"
import { cpus } from "node:os"
import { childrenOf } from "../support/children.ts"
import { finished, publish } from "../support/client.ts"
import { fill } from "../support/fill.ts"
import { type Service, startService } from "../support/service.ts"
import { trustingEnvironment } from "../support/tls.ts"
import { cpuSecondsOf, idle } from "./cpu.ts"
import { median, say } from "./print.ts"
import { startNats, startSink } from "./servers.ts"

const numbers = (process.env["BENCH_PROCESSES"] ?? "1,2,4").split(",").map(Number)
const sizes = (process.env["BENCH_SIZES"] ?? "10000,100000").split(",").map(Number)
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 3)
const largest = Math.max(...sizes)
/** Broadcasts after which a process that is not busy yet will not be. */
const warmUpsMax = 30
/** A start from the sources takes long on a busy machine. */
const readyTimeoutMillis = 120_000
const data = { title: "Bellcast", body: "x".repeat(240) }

const mebibytesOf = (pid: number, field: "VmHWM" | "VmRSS"): string => {
  const status = readFileSync(`/proc/${pid}/status`, "utf8")
  return (Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1]) / 1024).toFixed(0)
}

const nats = await startNats()
const sink = await startSink()
await using first = await startService({
  natsUrl: nats.url,
  env: trustingEnvironment,
  readyTimeoutMillis
})
await fill(nats.url, await sink.subscribe(largest), sizes)
await first.stop()

const broadcast = async (service: Service, size: number): Promise<number> => {
  await sink.reset()
  const begin = performance.now()
  const id = await publish(service.url, `bench-${size}`, data)
  await sink.waitForDistinct(size, 600_000)
  const rate = (size * 1_000) / (performance.now() - begin)
  await finished(service.url, `bench-${size}`, id, 300_000)
  return rate
}

const measure = async (processes: number) => {
  const env = { ...trustingEnvironment, BELLCAST_DELIVERY_PROCESSES: String(processes) }
  await using service = await startService({ natsUrl: nats.url, env, readyTimeoutMillis })
  const pid = service.process.pid!
  await idle([pid])
  const rested = mebibytesOf(pid, "VmRSS")
  for (let n = 0; n < 2 || (childrenOf(pid).length < processes - 1 && n < warmUpsMax); n++)
    await broadcast(service, largest)
  const pids = [pid, ...childrenOf(pid)]
  say(`\n${processes} processes (${pids.length} run): ${rested} MiB at rest, one of them`)
  for (const size of sizes) {
    const rates: Array<number> = []
    await idle([...pids, nats.pid])
    const before = [...pids, nats.pid].map(cpuSecondsOf)
    for (let round = 0; round < rounds; round++) rates.push(await broadcast(service, size))
    await idle([...pids, nats.pid])
    const cost = [...pids, nats.pid].map((each, i) =>
      (((cpuSecondsOf(each) - before[i]!) * 1_000) / (size * rounds)).toFixed(3)
    )
    say(
      `${String(size).padStart(7)}: ${median(rates).toFixed(0)} pushes/s; CPU s for 1,000 of all ` +
        `pushes: ${cost.slice(0, -1).join(" + ")}, nats-server ${cost.at(-1)}`
    )
  }
  say(`at the highest, MiB: ${pids.map((each) => mebibytesOf(each, "VmHWM")).join(" + ")}`)
  await service.stop()
}

say(
  `${cpus().length} cores (${cpus()[0]?.model.trim()}), Node ${process.versions.node}; ` +
    `median of ${rounds} rounds`
)
for (const processes of numbers) await measure(processes)
await nats.stop()
await sink[Symbol.asyncDispose]()
process.exit(0)
