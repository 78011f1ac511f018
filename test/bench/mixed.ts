// `make bench ARGS=mixed`: whether memory and descriptors of a process with all roles stay level.
// BENCH_MINUTES (default 10), twice with a rest of two minutes between: broadcasts to 10,000 and to
// 100 subscriptions, users who join and leave, pushes that are refused once with 503, and
// subscriptions that end with 410. Prints a line every 30 s, asserts nothing.
import { readdirSync, readFileSync } from "node:fs"
import { setTimeout as pause } from "node:timers/promises"
import { call, finished, join, publish } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { startService } from "../support/service.ts"
import { trustingEnvironment } from "../support/tls.ts"
import { say } from "./print.ts"
import { startNats, startSink } from "./servers.ts"

const minutes = Number(process.env["BENCH_MINUTES"] ?? 10)
const large = 10_000
const small = 100
/** Subscriptions that a push is refused for: half of them once, the others for good. */
const failing = 20
const sampleMillis = 30_000
const restMillis = 120_000

const nats = await startNats()
await using sink = await startSink()
await using service = await startService({
  natsUrl: nats.url,
  env: trustingEnvironment
})
const { pid } = service.process as { readonly pid: number }

const mebibytes = () =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024
const descriptors = () => readdirSync(`/proc/${pid}/fd`).length

const counts = { broadcasts: 0, pushes: 0, joined: 0, left: 0 }

/** Repeats a piece of work until the time is over. */
const repeat = async (end: number, work: (n: number) => Promise<void>) => {
  for (let n = 0; performance.now() < end; n++) await work(n)
}

const broadcast = async (channel: string) => {
  const id = await publish(service.url, channel, { title: "Bellcast", body: "x".repeat(240) })
  const { accepted } = await finished(service.url, channel, id, 120_000)
  counts.broadcasts += 1
  counts.pushes += accepted
}

const joinAndLeave = async (round: number, n: number) => {
  const name = `guest${round}-${n}-`
  const refused = await sink.subscribe(failing / 2, { script: ["503 retry-after 2", "201"] })
  const gone = await sink.subscribe(failing / 2, { script: ["410"] })
  await join([service.url], "mixed", [...refused, ...gone], 4, name)
  counts.joined += failing
  await broadcast("mixed")
  for (let i = 0; i < failing; i++)
    await call(service.url, "DELETE", "/channels/mixed/registration", `${name}${i}`)
  counts.left += failing
}

const phase = async (round: number) => {
  const end = performance.now() + minutes * 60_000
  await Promise.all([
    repeat(end, async () => {
      await broadcast("large")
      await pause(2_000)
    }),
    repeat(end, async () => {
      await broadcast("small")
      await pause(200)
    }),
    repeat(end, (n) => joinAndLeave(round, n)),
    repeat(end, async () => {
      await pause(sampleMillis)
      await sink.reset()
      say(
        `${Math.round(performance.now() / 1000)} s: ${mebibytes().toFixed(0)} MiB, ` +
          `${descriptors()} descriptors; ${JSON.stringify(counts)}`
      )
    })
  ])
}

const subscriptions = await sink.subscribe(large)
await fillChannels(nats.url, [
  { name: "large", subscriptions },
  { name: "small", subscriptions: subscriptions.slice(0, small) }
])
for (const round of [1, 2]) {
  say(`load ${round}: ${minutes} minutes`)
  await phase(round)
  await pause(restMillis)
  say(`two minutes after: ${mebibytes().toFixed(0)} MiB, ${descriptors()} descriptors`)
}
await service.stop()
await nats.stop()
process.exit(0)
