// `make bench ARGS=fair`: how broadcasts share the service. Two and four large ones at once, and
// one that begins in the middle of another: the share of each in the receipts while all run. And
// small ones, each to ten, five a second, before and beside a large one: from 202 to receipt.
// BENCH_LARGE (default 100000) are the subscriptions, BENCH_PROCESSES (default 1) the processes,
// BENCH_BEFORE the folder of another commit, with its packages, that is measured instead.
import { setTimeout as pause } from "node:timers/promises"
import { finished, publish } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { startService } from "../support/service.ts"
import { trustingEnvironment } from "../support/tls.ts"
import { cpuSecondsOf } from "./cpu.ts"
import { say } from "./print.ts"
import { startNats, startSink } from "./servers.ts"

const large = Number(process.env["BENCH_LARGE"] ?? 100_000)
const processes = Number(process.env["BENCH_PROCESSES"] ?? 1)
const program = process.env["BENCH_BEFORE"]
/** Channels of small broadcasts, each used once. */
const smallChannels = 300
const smallSize = 10
const smallEveryMillis = 200
const doneMillis = 300_000
const data = { title: "Bellcast", body: "x".repeat(240) }

const now = () => performance.timeOrigin + performance.now()
const percentile = (values: ReadonlyArray<number>, share: number) =>
  values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * share)] ?? Number.NaN

const nats = await startNats()
await using sink = await startSink()
const options = {
  natsUrl: nats.url,
  env: trustingEnvironment,
  ...(program === undefined ? {} : { program })
}
const services = [await startService(options)]
while (services.length < processes) services.push(await startService(options))
const url = services[0]!.url

const subscriptions = await sink.subscribe(large + smallChannels * smallSize)
/** A part of the subscriptions that a large broadcast goes to. */
const part = (index: number, of: number) => {
  const count = Math.floor(large / of)
  return { name: `large-${index}-${of}`, first: index * count, count }
}
const parts = [part(0, 1), part(0, 2), part(1, 2), ...[0, 1, 2, 3].map((i) => part(i, 4))]
const smalls = Array.from({ length: smallChannels }, (_, i) => ({
  name: `small-${i}`,
  first: large + i * smallSize,
  count: smallSize
}))
await fillChannels(
  nats.url,
  [...parts, ...smalls].map(({ count, first, name }) => ({
    name,
    subscriptions: subscriptions.slice(first, first + count)
  }))
)
type Group = (typeof parts)[number]

const begin = async (group: Group) => {
  const id = await publish(url, group.name, data)
  return { group, id, at: now() }
}
type Begun = Awaited<ReturnType<typeof begin>>

const receiptsOf = ({ count, first }: Group) => sink.receipts(first, count)
const isDone = async (begun: ReadonlyArray<Begun>) => {
  for (const { group, id } of begun) await finished(url, group.name, id, doneMillis)
}
const pids = [...services.map((service) => service.process.pid!), nats.pid]
const cpu = () => pids.reduce((sum, pid) => sum + cpuSecondsOf(pid), 0)

/** The share of each in the receipts from `from` until the first of them is complete. */
const shares = async (title: string, begun: ReadonlyArray<Begun>, from: number) => {
  await isDone(begun)
  const all: Array<ReadonlyArray<number>> = []
  for (const { group } of begun) all.push(await receiptsOf(group))
  const end = Math.min(...all.map((times) => Math.max(...times)))
  const counts = all.map((times) => times.filter((at) => at >= from && at <= end).length)
  const total = counts.reduce((sum, count) => sum + count, 0)
  const text = counts.map((count) => `${((100 * count) / total).toFixed(0)} %`).join(", ")
  const firsts = all.map((times, i) => (Math.min(...times) - begun[i]!.at).toFixed(0)).join(", ")
  const last = Math.max(...all.flat()) - begun[0]!.at
  say(
    `${title}: ${text} of ${total} within ${(end - from).toFixed(0)} ms; ` +
      `first receipts after ${firsts} ms; the last after ${last.toFixed(0)} ms`
  )
  await sink.reset()
}

const together = async (count: number) => {
  const groups = Array.from({ length: count }, (_, i) => part(i, count))
  const before = cpu()
  const begun = await Promise.all(groups.map(begin))
  const at = Math.max(...begun.map((each) => each.at))
  await shares(`${count} at once`, begun, at)
  say(`  CPU ${(((cpu() - before) * 1_000) / large).toFixed(3)} s per 1,000`)
}

const inTheMiddle = async () => {
  const first = await begin(part(0, 2))
  await sink.waitForDistinct(part(0, 2).count / 4, doneMillis)
  const second = await begin(part(1, 2))
  // Pushes of the first that are under way already come before.
  await shares("second in the middle, from 1 s on", [first, second], second.at + 1_000)
}

/** Small broadcasts until `ended`. Returns how many milliseconds each push took. */
const smallOnes = async (from: number, ended: () => boolean) => {
  const begun: Array<Promise<Begun>> = []
  for (const group of smalls.slice(from)) {
    if (ended()) break
    begun.push(begin(group))
    await pause(smallEveryMillis)
  }
  const took: Array<number> = []
  const list = await Promise.all(begun)
  await isDone(list)
  for (const { at, group } of list)
    for (const receipt of await receiptsOf(group)) took.push(receipt - at)
  const figures = [0.5, 0.99, 1].map((share) => percentile(took, share).toFixed(0)).join(", ")
  return `${list.length} small ones, p50, p99, max from 202 to receipt: ${figures} ms`
}

const besideLarge = async () => {
  const restEnd = now() + 5_000
  say(`alone: ${await smallOnes(0, () => now() > restEnd)}`)
  await sink.reset()
  const begun = await begin(part(0, 1))
  let isEnded = false
  const sent = sink.waitForDistinct(large, doneMillis).then(() => {
    isEnded = true
    return now() - begun.at
  })
  const text = await smallOnes(50, () => isEnded)
  say(`beside ${large} within ${(await sent).toFixed(0)} ms: ${text}`)
  await isDone([begun])
  await sink.reset()
}

await isDone([await begin(part(0, 1))])
await sink.reset()
await together(2)
await inTheMiddle()
await together(4)
await besideLarge()
for (const service of services) await service.stop()
await nats.stop()
process.exit(0)
