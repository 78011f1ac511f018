// `make bench ARGS=rate`: a broadcast with a rate of BENCH_RATE (default 1000) to BENCH_LARGE
// (default 60000) that starts at a given time, by three processes that deliver, of which one is
// killed 15 s later and comes back after 5 s. Prints when it started, and the receipts of the push
// service: on average, and the most and the fewest in any 10 s. Then how long a broadcast without a
// rate to 20,000 of them takes alone, and beside one with a rate. Asserts nothing.
import { setTimeout as pause } from "node:timers/promises"
import { call, finishedAt, publishAt } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { startService } from "../support/service.ts"
import { trustingEnvironment } from "../support/tls.ts"
import { say } from "./print.ts"
import { startNats, startSink } from "./servers.ts"

const large = Number(process.env["BENCH_LARGE"] ?? 60_000)
const rate = Number(process.env["BENCH_RATE"] ?? 1_000)
const medium = Math.min(20_000, large)
const killedAfterMillis = 15_000
const awayMillis = 5_000
const windowMillis = 10_000
const data = { title: "Bellcast", body: "x".repeat(240) }

const nats = await startNats()
await using sink = await startSink()
const start = (roles: string) =>
  startService({ natsUrl: nats.url, roles, env: trustingEnvironment, forgets: true })
const service = await start("gateway,projection,fanout,tally")
const workers = [await start("delivery"), await start("delivery"), await start("delivery")]

const subscriptions = await sink.subscribe(large)
await fillChannels(nats.url, [
  { name: "large", subscriptions },
  { name: "medium", subscriptions: subscriptions.slice(0, medium) }
])

say(`${large} subscriptions are there`)

/** For each full 10 s from each receipt on, how many there are. */
const windows = (receipts: ReadonlyArray<number>): ReadonlyArray<number> => {
  const counts: Array<number> = []
  for (let first = 0, behind = 0; first < receipts.length; first++) {
    while (behind < receipts.length && receipts[behind]! < receipts[first]! + windowMillis) behind++
    if (behind < receipts.length) counts.push(behind - first)
  }
  return counts
}

const show = (name: string, receipts: ReadonlyArray<number>) => {
  const seconds = (receipts.at(-1)! - receipts[0]!) / 1_000
  const counts = windows(receipts)
  const share = (pushes: number) => `${((pushes / rate) * 100).toFixed(1)} %`
  const perSecond = (count: number) => share(count / (windowMillis / 1_000))
  const [most, fewest] = counts.reduce(
    ([max, min], count) => [Math.max(max!, count), Math.min(min!, count)],
    [0, Number.POSITIVE_INFINITY]
  )
  say(
    `${name}: ${receipts.length} in ${seconds.toFixed(1)} s, ` +
      `${share(receipts.length / seconds)} of the rate on average; ` +
      `in any 10 s ${perSecond(most!)} at most, ${perSecond(fewest!)} at least`
  )
}

const killAndRestart = async () => {
  await pause(killedAfterMillis)
  await workers[0]!.kill()
  await pause(awayMillis)
  workers[0] = await start("delivery")
}

const receiptsOf = async () =>
  (await sink.receipts(0, large)).filter((at) => at > 0).toSorted((a, b) => a - b)

const at = Date.now() + 5_000
const scheduled = { data, rate, at: new Date(at).toISOString() }
const limited = await publishAt(service.url, "/channels/large", scheduled)
await pause(at - Date.now())
const killed = killAndRestart()
const { started_at } = await finishedAt(service.url, `/broadcasts/${limited}`, "publisher", 600_000)
await killed
say(`started ${started_at - at} ms after its time`)
show(`rate ${rate}, one of three workers killed and back`, await receiptsOf())
const { counts } = await sink.report()
say(`${counts.duplicates} pushes were sent twice`)

const secondsOf = async () => {
  const began = performance.now()
  const id = await publishAt(service.url, "/channels/medium", { data })
  await finishedAt(service.url, `/broadcasts/${id}`, "publisher", 600_000)
  return (performance.now() - began) / 1_000
}
await secondsOf()
const alone = await secondsOf()
const beside = await publishAt(service.url, "/channels/large", { data, rate: rate / 10 })
await pause(2_000)
const together = await secondsOf()
say(
  `${medium} without a rate: ${alone.toFixed(1)} s alone, ${together.toFixed(1)} s beside one ` +
    `with a rate (${(together / alone).toFixed(2)} times)`
)
await call(service.url, "PATCH", `/broadcasts/${beside}`, "publisher", {
  data: { state: "cancelled" }
})
const cancelledAt = performance.now()
await finishedAt(service.url, `/broadcasts/${beside}`, "publisher", 600_000)
say(`cancelled and counted in ${((performance.now() - cancelledAt) / 1_000).toFixed(1)} s`)
await Promise.all([service, ...workers].map((each) => each.stop()))
await nats.stop()
process.exit(0)
