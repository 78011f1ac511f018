// `make bench ARGS=mixed`: whether memory and descriptors of a process with all roles stay level.
// BENCH_MINUTES (default 10), twice with a rest of two minutes between: broadcasts to 10,000 and to
// 100 subscriptions, users who join and leave, pushes that are refused once with 503, and
// subscriptions that end with 410. Prints a line every 30 s, asserts nothing.
//
// BENCH_CLUSTER=true: once, at the cluster of `make test-alarms`, whose Prometheus must ring
// nothing: ends with 1 if it does.
import { readdirSync, readFileSync } from "node:fs"
import { setTimeout as pause } from "node:timers/promises"
import { startRig } from "../alarms/rig.ts"
import { call, finished, join, publish } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { startService } from "../support/service.ts"
import { trustingEnvironment } from "../support/tls.ts"
import { say } from "./print.ts"
import { startNats, startSink } from "./servers.ts"

const minutes = Number(process.env["BENCH_MINUTES"] ?? 10)
const isCluster = process.env["BENCH_CLUSTER"] === "true"
const large = 10_000
const small = 100
/** Subscriptions that a push is refused for: half of them once, the others for good. */
const failing = 20
const sampleMillis = 30_000
const restMillis = 120_000
const lookMillis = 5_000

interface Target {
  readonly url: string
  /** Of a login that may write to all streams. */
  readonly natsUrl: string
  readonly pids: () => ReadonlyArray<number>
  /** Names of the alerts that fire now. */
  readonly ringing: () => Promise<ReadonlyArray<string>>
  readonly stop: () => Promise<unknown>
}

const startOne = async (): Promise<Target> => {
  const nats = await startNats()
  const service = await startService({ natsUrl: nats.url, env: trustingEnvironment })
  const { pid } = service.process as { readonly pid: number }
  return {
    url: service.url,
    natsUrl: nats.url,
    pids: () => [pid],
    ringing: async () => [],
    stop: async () => {
      await service.stop()
      await nats.stop()
    }
  }
}

const startCluster = async (): Promise<Target> => {
  const rig = await startRig(trustingEnvironment)
  if (rig === undefined) throw new Error("BENCH_CLUSTER mounts small disks: it needs root on Linux")
  return {
    url: rig.url(),
    natsUrl: rig.urls.replaceAll("//bellcast:", "//bellcast-admin:"),
    pids: () => Object.values(rig.members).map(({ pid }) => pid),
    ringing: async () =>
      (await rig.prometheus.firing()).map(
        ({ annotations, labels }) => `${labels.alertname}: ${annotations["summary"]}`
      ),
    stop: () => Promise.resolve(rig[Symbol.asyncDispose]())
  }
}

const { natsUrl, pids, ringing, stop, url } = await (isCluster ? startCluster() : startOne())
await using sink = await startSink()

const mebibytes = () =>
  pids().reduce(
    (sum, pid) =>
      sum + Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024,
    0
  )
const descriptors = () =>
  pids().reduce((sum, pid) => sum + readdirSync(`/proc/${pid}/fd`).length, 0)

const counts = { broadcasts: 0, pushes: 0, joined: 0, left: 0, failed: 0 }
const rung = new Set<string>()

/**
 * Repeats a piece of work until the time is over. At the cluster a request may fail, as those of
 * real users, who try again.
 */
const repeat = async (end: number, work: (n: number) => Promise<void>) => {
  for (let n = 0; performance.now() < end; n++)
    await work(n).catch((error: unknown) => {
      if (!isCluster) throw error
      counts.failed += 1
      say(String(error))
    })
}

const broadcast = async (channel: string) => {
  const id = await publish(url, channel, { title: "Bellcast", body: "x".repeat(240) })
  const { accepted } = await finished(url, channel, id, 120_000)
  counts.broadcasts += 1
  counts.pushes += accepted
}

const joinAndLeave = async (round: number, n: number) => {
  const name = `guest${round}-${n}-`
  const refused = await sink.subscribe(failing / 2, { script: ["503 retry-after 2", "201"] })
  const gone = await sink.subscribe(failing / 2, { script: ["410"] })
  await join([url], "mixed", [...refused, ...gone], 4, name)
  counts.joined += failing
  await broadcast("mixed")
  for (let i = 0; i < failing; i++)
    await call(url, "DELETE", "/channels/mixed/registration", `${name}${i}`)
  counts.left += failing
}

const lookAtAlerts = async () => {
  for (const each of await ringing()) {
    if (!rung.has(each)) say(`rings: ${each}`)
    rung.add(each)
  }
  await pause(lookMillis)
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
    repeat(end, lookAtAlerts),
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

try {
  const subscriptions = await sink.subscribe(large)
  await fillChannels(natsUrl, [
    { name: "large", subscriptions },
    { name: "small", subscriptions: subscriptions.slice(0, small) }
  ])
  for (const round of isCluster ? [1] : [1, 2]) {
    say(`load ${round}: ${minutes} minutes`)
    await phase(round)
    if (isCluster) continue
    await pause(restMillis)
    say(`two minutes after: ${mebibytes().toFixed(0)} MiB, ${descriptors()} descriptors`)
  }
} finally {
  await stop()
}
if (isCluster) say(rung.size === 0 ? "nothing rang" : `rang: ${[...rung].join("; ")}`)
process.exit(rung.size === 0 ? 0 : 1)
