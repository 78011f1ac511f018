// `make bench ARGS=distance`: what a distance to the push service costs, over HTTP/1.1 and HTTP/2,
// through the same TCP proxy at each distance (see ../support/distance.ts), beside web-push with
// 100 in flight in the same run; and when the first push of a broadcast arrives. It prints ratios
// and asserts nothing: machines are noisy. BENCH_DISTANCES (default 0,60,100) are round trips in
// milliseconds; BENCH_SIZE (default 20000) the subscriptions of each push service; BENCH_ROUNDS
// (default 5) the repetitions.
import { cpus } from "node:os"
import { finished, publish } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { startService, vapid } from "../support/service.ts"
import { type SpawnedPushService, spawnPushService } from "../support/spawn-push-service.ts"
import { trustingEnvironment } from "../support/tls.ts"
import type { SubscriptionJson } from "../support/user-agent.ts"
import { cpuSecondsOf, idle } from "./cpu.ts"
import { fsyncOf } from "./fsync.ts"
import { type Figures, runNode } from "./peers.ts"
import { median, say } from "./print.ts"
import { startNats } from "./servers.ts"

const distances = (process.env["BENCH_DISTANCES"] ?? "0,60,100").split(",").map(Number)
const size = Number(process.env["BENCH_SIZE"] ?? 20_000)
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 5)
const peerSize = Math.min(size, 5_000)
/** The first push of a broadcast to so many is timed, so often. */
const firstSize = Math.min(size, 1_000)
const firsts = 20
const data = { title: "Bellcast", body: "x".repeat(240) }
const payload = JSON.stringify(data)

interface Row {
  readonly name: string
  readonly roundTripMillis: number
  readonly http2: boolean
  readonly sink: SpawnedPushService
  readonly subscriptions: ReadonlyArray<SubscriptionJson>
  readonly figures: Array<Figures>
  readonly peer: Array<Figures>
}

const rowOf = async (roundTripMillis: number, http2: boolean): Promise<Row> => {
  const options = { tls: true, http2, decrypt: false, host: "localhost", roundTripMillis } as const
  const sink = await spawnPushService(options)
  return {
    name: `${roundTripMillis} ms, ${http2 ? "HTTP/2" : "HTTP/1.1"}`,
    roundTripMillis,
    http2,
    sink,
    subscriptions: await sink.subscribe(size),
    figures: [],
    peer: []
  }
}

const nats = await startNats()
await using service = await startService({ natsUrl: nats.url, env: trustingEnvironment })
const servicePid = service.process.pid!
const rows: Array<Row> = []
for (const http2 of [false, true])
  for (const roundTripMillis of distances) rows.push(await rowOf(roundTripMillis, http2))
const channelOf = ({ http2, roundTripMillis }: Row) => `${http2 ? "h2" : "h1"}-${roundTripMillis}`
await fillChannels(nats.url, [
  ...rows.map((row) => ({ name: channelOf(row), subscriptions: row.subscriptions })),
  { name: "first", subscriptions: rows[0]!.subscriptions.slice(0, firstSize) }
])
say(
  `${size} subscriptions each, ${cpus().length} cores, Node ${process.versions.node}; ` +
    `median of ${rounds} rounds; ${fsyncOf(nats.folder)}`
)

const broadcast = async ({ sink }: Row, channel: string, count: number) => {
  await sink.reset()
  const start = performance.now()
  const id = await publish(service.url, channel, data)
  const acceptedAt = performance.timeOrigin + performance.now()
  await sink.waitForDistinct(count, 300_000)
  const seconds = (performance.now() - start) / 1000
  await finished(service.url, channel, id, 120_000)
  return { seconds, first: (await sink.latencies(acceptedAt)).first }
}

const measure = async (row: Row): Promise<Figures> => {
  const pids = [servicePid, nats.pid]
  await idle(pids)
  const cpu = () => pids.reduce((sum, pid) => sum + cpuSecondsOf(pid), 0)
  const before = cpu()
  const { seconds } = await broadcast(row, channelOf(row), size)
  return { seconds, cpuSeconds: cpu() - before }
}

for (const row of rows) await broadcast(row, channelOf(row), size)
for (let round = 0; round < rounds; round++)
  for (const row of rows) {
    row.figures.push(await measure(row))
    if (row.http2) continue
    const subscriptions = row.subscriptions.slice(0, peerSize)
    row.peer.push(await runNode("loop.ts", { subscriptions, vapid, payload }))
  }

const rateOf = (list: ReadonlyArray<Figures>, count: number) =>
  count / median(list.map(({ seconds }) => seconds))
const costOf = (list: ReadonlyArray<Figures>, count: number) =>
  (median(list.map(({ cpuSeconds }) => cpuSeconds)) * 1000) / count
const cells = (...texts: ReadonlyArray<string>) => texts.map((text) => text.padStart(13)).join("")
const line = (
  name: string,
  figures: ReadonlyArray<Figures>,
  nearest: ReadonlyArray<Figures>,
  count: number
) => {
  const [rate, cost] = [rateOf(figures, count), costOf(figures, count)]
  const [rateNear, costNear] = [rateOf(nearest, count), costOf(nearest, count)]
  const shares = [(rate / rateNear).toFixed(2), (cost / costNear).toFixed(2)]
  say(`${name.padEnd(34)}${cells(rate.toFixed(0), cost.toFixed(3), ...shares)}`)
}
say(`\n${"".padEnd(34)}${cells("pushes/s", "CPU s / 1000", "rate, of", "CPU, of")}`)
say(`${"".padEnd(34)}${cells("", "", "the nearest", "the nearest")}`)
for (const row of rows) {
  const nearest = rows.find(({ http2 }) => http2 === row.http2)!
  line(`Bellcast, ${row.name}`, row.figures, nearest.figures, size)
}
for (const row of rows)
  if (row.peer.length > 0) line(`web-push, ${row.name}`, row.peer, rows[0]!.peer, peerSize)

const receipts: Array<number> = []
for (let i = 0; i < firsts + 3; i++) {
  await idle([servicePid, nats.pid])
  const { first } = await broadcast(rows[0]!, "first", firstSize)
  if (i >= 3) receipts.push(first)
}
say(
  `\nfrom 202 to the first receipt, ${rows[0]!.name}, ${firstSize} subscriptions, ` +
    `median of ${firsts}: ${median(receipts).toFixed(0)} ms`
)
say(fsyncOf(nats.folder))
for (const { sink } of rows) await sink[Symbol.asyncDispose]()
await service.stop()
await nats.stop()
process.exit(0)
