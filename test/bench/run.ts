// `make bench`: deliveries a second and CPU seconds per 1,000 deliveries of the whole service (all its processes and nats-server, log on disk with
// sync always), beside a plain loop over web-push and beside the ceiling, against the same sink over TLS in the same run. It prints ratios and
// asserts nothing: machines are noisy. BENCH_SUBSCRIPTIONS (default 10000) sets the size, BENCH_ROUNDS (default 3) the repetitions.
import { fork } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { cpus, tmpdir } from "node:os"
import { join as path } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { launch } from "#embedded/launch.ts"
import { locateNatsServer } from "#embedded/locate.ts"
import { finished, join, publish } from "../support/client.ts"
import { startService, vapid } from "../support/service.ts"
import { spawnPushService } from "../support/spawn-push-service.ts"
import { trustingEnvironment } from "../support/tls.ts"

const size = Number(process.env["BENCH_SUBSCRIPTIONS"] ?? 10_000)
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 3)
const data = { title: "Bellcast", body: "x".repeat(240) }
const payload = JSON.stringify(data)
const ticksPerSecond = 100

interface Figures {
  readonly seconds: number
  readonly cpuSeconds: number
}

/** User and system time of a process, its ended children left out (Linux). */
const cpuSecondsOf = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ")
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}

const peakMebibytesOf = (pid: number): number => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024

const runChild = (file: string, order: unknown): Promise<Figures> =>
  new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(new URL(file, import.meta.url)), { env: { ...process.env, ...trustingEnvironment }, execArgv: [] })
    child.once("message", (figures) => resolve(figures as Figures))
    child.once("exit", (code) => code !== 0 && reject(new Error(`${file} ended with ${code}`)))
    child.send(order as object)
  })

const median = (values: ReadonlyArray<number>): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
const say = (line: string) => process.stdout.write(`${line}\n`)

// The binary, not a container: its CPU time is read from its process.
const folder = mkdtempSync(path(tmpdir(), "bellcast-bench-"))
const nats = await launch({ binary: await Effect.runPromise(locateNatsServer), folder })
await using sink = await spawnPushService({ tls: true, decrypt: false, host: "localhost" })
await using service = await startService({ natsUrl: nats.url, env: { ...trustingEnvironment } })
say(
  `${size} subscriptions, payload ${payload.length} bytes, ${cpus().length} cores (${cpus()[0]?.model.trim()}), Node ${process.versions.node}; median of ${rounds} rounds`
)
const subscriptions = await sink.subscribe(size)
await join([service.url], "bench", subscriptions as never, 64)
const order = { subscriptions, vapid, payload }

const broadcast = async (): Promise<Figures & { readonly natsCpuSeconds: number }> => {
  await sink.reset()
  const before = { service: cpuSecondsOf(service.process.pid!), nats: cpuSecondsOf(nats.pid) }
  const start = performance.now()
  const id = await publish(service.url, "bench", data)
  await sink.waitForDistinct(size, 300_000)
  const seconds = (performance.now() - start) / 1000
  // Outcomes and counts are part of the work.
  await finished(service.url, "bench", id, 60_000)
  const natsCpuSeconds = cpuSecondsOf(nats.pid) - before.nats
  return { seconds, natsCpuSeconds, cpuSeconds: cpuSecondsOf(service.process.pid!) - before.service + natsCpuSeconds }
}

await broadcast()
const results = { loop: [] as Array<Figures>, ceiling: [] as Array<Figures>, service: [] as Array<Figures & { natsCpuSeconds: number }> }
for (let round = 0; round < rounds; round++) {
  results.loop.push(await runChild("loop.ts", order))
  results.service.push(await broadcast())
  results.ceiling.push(await runChild("ceiling.ts", order))
}

const perCpu = (list: ReadonlyArray<Figures>) => median(list.map(({ cpuSeconds }) => size / cpuSeconds))
const row = (name: string, list: ReadonlyArray<Figures>) =>
  say(
    [
      name.padEnd(34),
      (size / median(list.map(({ seconds }) => seconds))).toFixed(0).padStart(12),
      ((median(list.map(({ cpuSeconds }) => cpuSeconds)) * 1000) / size).toFixed(3).padStart(14),
      `${(perCpu(list) / perCpu(results.loop)).toFixed(2)} x`.padStart(12)
    ].join("")
  )
say(`\n${"".padEnd(34)}${"deliveries/s".padStart(12)}${"CPU s / 1000".padStart(14)}${"per CPU s".padStart(12)}`)
row("web-push loop, 100 in flight", results.loop)
row("Bellcast, nats-server included", results.service)
row("ceiling: encrypt + undici, no log", results.ceiling)
const natsShare = median(results.service.map(({ natsCpuSeconds }) => (natsCpuSeconds * 1000) / size))
say(
  `\nof Bellcast's CPU, nats-server: ${natsShare.toFixed(3)} s / 1000; peak memory: service ${peakMebibytesOf(service.process.pid!).toFixed(0)} MiB, nats-server ${peakMebibytesOf(nats.pid).toFixed(0)} MiB`
)
await service.stop()
await nats.stop()
rmSync(folder, { recursive: true, force: true })
process.exit(0)
