// `make bench ARGS=memory`: the resident memory of a process with all roles at its start, with an
// embedded nats-server and without, at its highest and two minutes after its largest broadcast; CPU
// and first receipt by the size of the broadcast; and the CPU that it takes at rest. It prints and
// asserts nothing. BENCH_SIZES are the sizes. BENCH_BEFORE: the folder of another commit of
// Bellcast with its packages, which is measured first, in the same run.
import { readFileSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { cpus, tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { finished, publish } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { startService } from "../support/service.ts"
import { trustingEnvironment } from "../support/tls.ts"
import { cpuSecondsOf, idle } from "./cpu.ts"
import { median, say } from "./print.ts"
import { startNats, startSink } from "./servers.ts"

const usualSizes = "1000,10000,20000,100000,200000"
const sizes = (process.env["BENCH_SIZES"] ?? usualSizes).split(",").map(Number)
const largest = Math.max(...sizes)
/** The size that the CPU of others is compared with, if it is measured. */
const comparedSize = 10_000
/** Broadcasts of each size; medians are printed. */
const rounds = 5
const restMillis = 30_000
/** Until V8 has compiled what runs at rest, and the garbage of the start was collected. */
const settleMillis = 60_000
const afterMillis = 120_000
const data = { title: "Bellcast", body: "x".repeat(240) }

const mebibytesOf = (pid: number, field: "VmHWM" | "VmRSS"): string => {
  const status = readFileSync(`/proc/${pid}/status`, "utf8")
  return (Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1]) / 1024).toFixed(0)
}

/** Share of a core that each process takes at rest. */
const restOf = async (pids: ReadonlyArray<number>) => {
  await idle(pids)
  const before = pids.map(cpuSecondsOf)
  await pause(restMillis)
  return pids.map(
    (pid, i) => `${(((cpuSecondsOf(pid) - before[i]!) * 1e5) / restMillis).toFixed(1)} %`
  )
}

const programOf = (program: string | undefined) => (program === undefined ? {} : { program })

/** Resident memory of a process that is ready and has started its nats-server. */
const embeddedStart = async (program: string | undefined): Promise<string> => {
  const cwd = await mkdtemp(join(tmpdir(), "bellcast-bench-"))
  const service = await startService({ cwd, ...programOf(program) })
  const memory = mebibytesOf(service.process.pid!, "VmRSS")
  await service.stop()
  await rm(cwd, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  return memory
}

const measure = async (name: string, program: string | undefined) => {
  const embedded = await embeddedStart(program)
  const nats = await startNats()
  const sink = await startSink()
  const subscriptions = await sink.subscribe(largest)
  await using service = await startService({
    natsUrl: nats.url,
    env: trustingEnvironment,
    ...programOf(program)
  })
  const pids = [service.process.pid!, nats.pid]
  const [servicePid, natsPid] = [service.process.pid!, nats.pid]
  const start = mebibytesOf(servicePid, "VmRSS")
  await pause(settleMillis)
  const rest = await restOf(pids)
  const rested = mebibytesOf(servicePid, "VmRSS")
  await fillChannels(
    nats.url,
    sizes.map((size) => ({ name: `all${size}`, subscriptions: subscriptions.slice(0, size) }))
  )
  const broadcast = async (size: number) => {
    await sink.reset()
    await idle(pids)
    const before = cpuSecondsOf(servicePid)
    const begin = performance.now()
    const id = await publish(service.url, `all${size}`, data)
    const acceptedAt = performance.timeOrigin + performance.now()
    await sink.waitForDistinct(size, 600_000)
    const rate = (size * 1_000) / (performance.now() - begin)
    await finished(service.url, `all${size}`, id, 300_000)
    await idle(pids)
    const cpu = ((cpuSecondsOf(servicePid) - before) * 1_000) / size
    return { cpu, rate, first: (await sink.latencies(acceptedAt)).first }
  }
  say(`\n${name}: at the start ${start} MiB (embedded ${embedded}), at rest ${rested} MiB`)
  say(`CPU at rest: ${rest[0]} of a core, nats-server ${rest[1]}`)
  let compared: number | undefined
  for (const size of sizes) {
    await broadcast(size)
    const all: Array<Awaited<ReturnType<typeof broadcast>>> = []
    for (let round = 0; round < rounds; round++) all.push(await broadcast(size))
    const of = (field: "cpu" | "first" | "rate") => median(all.map((each) => each[field]))
    const cpu = of("cpu")
    if (size === comparedSize) compared = cpu
    const ratio = compared === undefined ? "" : ` (${(cpu / compared).toFixed(2)} x)`
    say(
      `${String(size).padStart(7)}: first receipt ${of("first").toFixed(0)} ms after the 202, ` +
        `${cpu.toFixed(3)} s of CPU per 1,000${ratio}, ${of("rate").toFixed(0)} pushes/s; ` +
        `at the highest ${mebibytesOf(servicePid, "VmHWM")} MiB, ` +
        `nats-server ${mebibytesOf(natsPid, "VmHWM")}`
    )
  }
  await pause(afterMillis)
  say(`two minutes after: ${mebibytesOf(servicePid, "VmRSS")} MiB`)
  await service.stop()
  await nats.stop()
  await sink[Symbol.asyncDispose]()
}

say(`${cpus().length} cores (${cpus()[0]?.model.trim()}), Node ${process.versions.node}`)
const before = process.env["BENCH_BEFORE"]
if (before !== undefined) await measure("before", before)
await measure("now", undefined)
process.exit(0)
