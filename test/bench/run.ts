// `make bench`, first part: from publish to the last receipt. Deliveries a second and CPU seconds
// per 1,000 deliveries of the whole service (its process and nats-server, log on disk with sync
// always) at several sizes, beside a plain loop over web-push, webpush-go where Go is, and the
// ceiling, with as many subscriptions, against the same sink over TLS in the same run. It prints
// ratios and asserts nothing: machines are noisy. BENCH_SIZES (default 1000,10000,100000) are the
// channels, BENCH_ROUNDS (default 3) the repetitions, BENCH_PROCESSES (default: one for each core)
// the processes that deliver; BENCH_PROFILE names a folder for a CPU profile of each.
import { readFileSync } from "node:fs"
import { availableParallelism, cpus } from "node:os"
import { childrenOf } from "../support/children.ts"
import { finished, publish } from "../support/client.ts"
import { fill } from "../support/fill.ts"
import { startService, vapid } from "../support/service.ts"
import { spawnPushService } from "../support/spawn-push-service.ts"
import { trustingEnvironment } from "../support/tls.ts"
import { cpuSecondsOf, idle } from "./cpu.ts"
import { buildWebpushGo, type Figures, runNode } from "./peers.ts"
import { median, say } from "./print.ts"
import { startNats } from "./servers.ts"

const sizes = (process.env["BENCH_SIZES"] ?? "1000,10000,100000").split(",").map(Number)
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 3)
const profile = process.env["BENCH_PROFILE"]
const processes = process.env["BENCH_PROCESSES"] ?? String(availableParallelism())
/** A peer that is over before the clock of its CPU time has ticked often enough says nothing. */
const peerSizes = sizes.filter((size) => size >= 10_000 || size === Math.max(...sizes))
/**
 * A small broadcast is over before the clock of a process's CPU time has ticked often enough:
 * several are measured together.
 */
const pushesAtLeast = 10_000
/** Until then the service's code is still being compiled: a push costs a third more. */
const warmUpPushes = 20_000
/** Other processes start under load: broadcasts after which one that has not started will not. */
const warmUpsMax = 30
const data = { title: "Bellcast", body: "x".repeat(240) }
const payload = JSON.stringify(data)

interface Broadcasts extends Figures {
  readonly natsCpuSeconds: number
  /** From the 202 to the receipt, milliseconds. */
  readonly p50: number
  readonly p99: number
}

const mebibytesOf = (pid: number, field: "VmHWM" | "VmRSS"): string =>
  (
    Number(
      new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0
    ) / 1024
  ).toFixed(0)

const nats = await startNats()
await using sink = await spawnPushService({ tls: true, decrypt: false, host: "localhost" })
const env = {
  ...trustingEnvironment,
  BELLCAST_DELIVERY_PROCESSES: processes,
  ...(profile === undefined ? {} : { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${profile}` })
}
await using service = await startService({ natsUrl: nats.url, env })
const servicePid = service.process.pid!
const pids = () => [servicePid, ...childrenOf(servicePid)]
const sumOf = (values: ReadonlyArray<number>) => values.reduce((sum, value) => sum + value, 0)
using webpushGo = buildWebpushGo()
say(
  `payload ${payload.length} bytes, ${cpus().length} cores (${cpus()[0]?.model.trim()}), ` +
    `Node ${process.versions.node}; median of ${rounds} rounds`
)
const subscriptions = await sink.subscribe(Math.max(...sizes))
await fill(nats.url, subscriptions, sizes)

const broadcast = async (size: number) => {
  await sink.reset()
  const start = performance.now()
  const id = await publish(service.url, `bench-${size}`, data)
  const acceptedAt = performance.timeOrigin + performance.now()
  await sink.waitForDistinct(size, 300_000)
  const seconds = (performance.now() - start) / 1000
  // Outcomes and counts are part of the work.
  await finished(service.url, `bench-${size}`, id, 60_000)
  return { seconds, ...(await sink.latencies(acceptedAt)) }
}

const measure = async (size: number): Promise<Broadcasts> => {
  await idle([...pids(), nats.pid])
  const count = Math.max(1, Math.round(pushesAtLeast / size))
  const cpu = () => ({ service: sumOf(pids().map(cpuSecondsOf)), nats: cpuSecondsOf(nats.pid) })
  const before = cpu()
  const each: Array<Awaited<ReturnType<typeof broadcast>>> = []
  for (let i = 0; i < count; i++) each.push(await broadcast(size))
  const after = cpu()
  const natsCpuSeconds = (after.nats - before.nats) / count
  return {
    seconds: median(each.map(({ seconds }) => seconds)),
    cpuSeconds: (after.service - before.service) / count + natsCpuSeconds,
    natsCpuSeconds,
    p50: median(each.map(({ p50 }) => p50)),
    p99: median(each.map(({ p99 }) => p99))
  }
}

const orderOf = (size: number) => ({ subscriptions: subscriptions.slice(0, size), vapid, payload })
type BySize = ReadonlyMap<number, Array<Figures>>
const bySize = (): BySize => new Map(peerSizes.map((size) => [size, []]))
const loop = bySize()
const ceiling = bySize()
const go = bySize()
const bellcast = new Map<number, Array<Broadcasts>>(sizes.map((size) => [size, []]))
const memory: Array<string> = []
for (const size of sizes)
  for (let pushes = 0; pushes < warmUpPushes / sizes.length || pushes === 0; pushes += size)
    await broadcast(size)
for (let n = 0; pids().length < Number(processes) && n < warmUpsMax; n++)
  await broadcast(Math.max(...sizes))
for (let round = 0; round < rounds; round++) {
  for (const size of peerSizes) {
    const order = orderOf(size)
    loop.get(size)!.push(await runNode("loop.ts", order))
    ceiling.get(size)!.push(await runNode("ceiling.ts", order))
    if (webpushGo !== undefined) go.get(size)!.push(await webpushGo.run(order))
  }
  for (const [size, list] of bellcast) list.push(await measure(size))
  memory.push(
    pids()
      .map((pid) => mebibytesOf(pid, "VmRSS"))
      .join(" + ")
  )
}

const perThousand = (list: ReadonlyArray<Figures>, size: number) =>
  (median(list.map(({ cpuSeconds }) => cpuSeconds)) * 1000) / size
const cells = (...texts: ReadonlyArray<string>) => texts.map((text) => text.padStart(14)).join("")
/** The peers of the same size, or of the next that has some. */
const peersOf = (list: BySize, size: number) => {
  const peer = peerSizes.find((each) => each >= size) ?? peerSizes.at(-1)!
  return { cost: perThousand(list.get(peer)!, peer), rate: rateOf(list.get(peer)!, peer) }
}
const rateOf = (list: ReadonlyArray<Figures>, size: number) =>
  size / median(list.map(({ seconds }) => seconds))
const figures = (list: ReadonlyArray<Figures>, size: number) => {
  const [cost, rate] = [perThousand(list, size), rateOf(list, size)]
  const times = (value: number) => (Number.isNaN(value) ? "-" : `${value.toFixed(2)} x`)
  return cells(
    rate.toFixed(0),
    times(rate / peersOf(go, size).rate),
    cost.toFixed(3),
    times(cost / peersOf(go, size).cost),
    times(peersOf(loop, size).cost / cost),
    times(peersOf(ceiling, size).cost / cost)
  )
}
const row = (name: string, list: ReadonlyArray<Figures>, size: number) =>
  say(`${`${name}, ${size}`.padEnd(42)}${figures(list, size)}`)
const heads = [
  ["deliveries/s", "of webpush-go", "CPU s / 1000", "of webpush-go", "per CPU s: of", "of the"],
  ["", "", "", "", "the loop", "ceiling"]
]
say("")
for (const head of heads) say(`${"".padEnd(42)}${cells(...head)}`)
for (const size of peerSizes) {
  row("web-push loop, 100 in flight", loop.get(size)!, size)
  if (webpushGo === undefined) say("webpush-go: no Go here")
  else row("webpush-go, 100 workers", go.get(size)!, size)
  row("ceiling: encrypt + undici, no log", ceiling.get(size)!, size)
}
for (const [size, list] of bellcast) row(`Bellcast, ${processes} processes`, list, size)

say(`\n${"".padEnd(42)}${cells("p50 ms", "p99 ms", "nats-server")}`)
for (const [size, list] of bellcast) {
  const of = (pick: (each: Broadcasts) => number) => median(list.map(pick))
  say(
    `${`from 202 to receipt, ${size}`.padEnd(42)}${cells(
      of(({ p50 }) => p50).toFixed(0),
      of(({ p99 }) => p99).toFixed(0),
      perThousand(
        list.map(({ natsCpuSeconds, seconds }) => ({ cpuSeconds: natsCpuSeconds, seconds })),
        size
      ).toFixed(3)
    )}`
  )
}
say(
  `\nmemory, MiB: service at most ${pids()
    .map((pid) => mebibytesOf(pid, "VmHWM"))
    .join(" + ")}, ` +
    `after each round ${memory.join(", ")}; ` +
    `nats-server at most ${mebibytesOf(nats.pid, "VmHWM")}`
)
await service.stop()
await nats.stop()
process.exit(0)
