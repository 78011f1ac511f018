// `make bench ARGS=small`: broadcasts to channels with one subscriber each, 20 and 100 under way,
// and 100 a second; and broadcasts to one user each; beside web-push with 100 in flight, which
// stores nothing. It asserts nothing: machines are noisy. BENCH_CHANNELS (default 200) are the
// channels, BENCH_SMALL (default 2000) the broadcasts of a row, BENCH_ROUNDS (default 3) the
// repetitions. BENCH_BEFORE: the folder of another commit of Bellcast with its packages, which is
// measured in turn with this one, row by row.
import { cpus } from "node:os"
import { setTimeout as sleep } from "node:timers/promises"
import { publish, publishAt } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { startPushService } from "../support/push-service.ts"
import { startService, vapid } from "../support/service.ts"
import { trustingEnvironment } from "../support/tls.ts"
import { idOf } from "../support/users.ts"
import { cpuSecondsOf, idle } from "./cpu.ts"
import { fsyncOf } from "./fsync.ts"
import { type Figures, runNode } from "./peers.ts"
import { say } from "./print.ts"
import { startNats } from "./servers.ts"

const channels = Number(process.env["BENCH_CHANNELS"] ?? 200)
const count = Number(process.env["BENCH_SMALL"] ?? 2_000)
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 3)
const perSecond = 100
const data = { title: "Bellcast", body: "x".repeat(240) }
/** A broadcast that is not delivered within this ends the bench. */
const deliveredMillis = 60_000

interface Small extends Figures {
  /** From the request to the receipt, milliseconds. */
  readonly latencies: ReadonlyArray<number>
  readonly natsCpuSeconds: number
}

interface Row {
  readonly name: string
  readonly run: (stage: Stage) => Promise<ReadonlyArray<number>>
  /** Of each stage. */
  readonly figures: ReadonlyArray<Array<Small>>
}

const percentile = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * share)]!
const median = (values: ReadonlyArray<number>) => percentile(values, 0.5)

/** A service with its own NATS and push service, and one browser for each channel. */
const startStage = async (program: string | undefined) => {
  const nats = await startNats()
  const sink = await startPushService({ tls: true, decrypt: false, host: "localhost" })
  const service = await startService({
    natsUrl: nats.url,
    env: { ...trustingEnvironment, BELLCAST_USER_WRITE_PRINCIPALS: idOf("publisher") },
    ...(program === undefined ? {} : { program })
  })
  /** `arrived` is called with each push. */
  const browsers = Array.from({ length: channels }, (_, i) => {
    const agent = sink.subscribe()
    const browser = { name: `small-${i}`, user: idOf(`user${i}`), agent, arrived: () => {} }
    agent.answerBy((next) => {
      browser.arrived()
      return next()
    })
    return browser
  })
  await fillChannels(
    nats.url,
    browsers.map(({ agent, name }) => ({ name, subscriptions: [agent.subscription] })),
    { areBasic: true }
  )
  const stop = async () => {
    await service.stop()
    await sink[Symbol.asyncDispose]()
    await nats.stop()
  }
  return { nats, service, browsers, pids: [service.process.pid!, nats.pid], stop }
}

type Stage = Awaited<ReturnType<typeof startStage>>
type Browser = Stage["browsers"][number]
type Send = (stage: Stage, browser: Browser) => Promise<unknown>
const toChannel: Send = ({ service }, { name }) => publish(service.url, name, data)
const toUser: Send = ({ service }, { user }) =>
  publishAt(service.url, "/broadcasts", { data, to: { users: [user] } })

/** Publishes and waits for the receipt; one at a time for each browser. */
const one = async (stage: Stage, browser: Browser, send: Send): Promise<number> => {
  const start = performance.now()
  const arrival = new Promise<number>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("not delivered")), deliveredMillis)
    browser.arrived = () => {
      clearTimeout(timer)
      resolve(performance.now() - start)
    }
  })
  await send(stage, browser)
  return arrival
}

const measured = async (stage: Stage, run: Row["run"]): Promise<Small> => {
  const { pids } = stage
  await idle(pids)
  const cpu = () => pids.map(cpuSecondsOf)
  const [before, start] = [cpu(), performance.now()]
  const latencies = await run(stage)
  const seconds = (performance.now() - start) / 1000
  await idle(pids)
  const [ofService = 0, natsCpuSeconds = 0] = cpu().map((after, i) => after - before[i]!)
  return { seconds, cpuSeconds: ofService + natsCpuSeconds, natsCpuSeconds, latencies }
}

/** So many broadcasts are under way all the time. */
const closed = (underWay: number, send: Send) => async (stage: Stage) => {
  const latencies: Array<number> = []
  let left = count
  const worker = async (_: unknown, n: number) => {
    for (let i = n; left > 0; i += underWay) {
      left -= 1
      latencies.push(await one(stage, stage.browsers[i % channels]!, send))
    }
  }
  await Promise.all(Array.from({ length: Math.min(underWay, channels) }, worker))
  return latencies
}

/** A broadcast every 10 ms, whatever became of the last. */
const open = (send: Send) => async (stage: Stage) => {
  const start = performance.now()
  const all: Array<Promise<number>> = []
  for (let i = 0; i < count / 4; i++) {
    await sleep(Math.max(0, start + (i * 1_000) / perSecond - performance.now()))
    all.push(one(stage, stage.browsers[i % channels]!, send))
  }
  return Promise.all(all)
}

const before = process.env["BENCH_BEFORE"]
const stages = [await startStage(undefined)]
if (before !== undefined) stages.push(await startStage(before))
const [{ browsers, nats }] = stages as [Stage]

const rows: ReadonlyArray<Row> = (
  [
    ["20 under way", closed(20, toChannel)],
    ["100 under way", closed(100, toChannel)],
    [`${perSecond} a second`, open(toChannel)],
    ["to a user, 20 under way", closed(20, toUser)],
    [`to a user, ${perSecond} a second`, open(toUser)]
  ] as const
).map(([name, run]) => ({ name, run, figures: stages.map(() => []) }))
const peer: Array<Figures> = []
say(
  `${channels} channels with one subscriber, ${cpus().length} cores, ` +
    `Node ${process.versions.node}; median of ${rounds} rounds; ${fsyncOf(nats.folder)}`
)
for (const stage of stages) for (const { run } of rows) await run(stage)
const payload = JSON.stringify(data)
const subscriptions = Array.from(
  { length: count },
  (_, i) => browsers[i % channels]!.agent.subscription
)
for (let round = 0; round < rounds; round++) {
  for (const browser of browsers) browser.arrived = () => {}
  peer.push(await runNode("loop.ts", { subscriptions, vapid, payload }))
  // Whichever comes first has colder caches.
  const inTurn = [...stages.entries()]
  if (round % 2 === 1) inTurn.reverse()
  for (const { figures, run } of rows)
    for (const [i, stage] of inTurn) figures[i]!.push(await measured(stage, run))
}

const cells = (...texts: ReadonlyArray<string>) => texts.map((text) => text.padStart(13)).join("")
const line = (
  name: string,
  figures: ReadonlyArray<Figures>,
  sent: number,
  ...more: Array<string>
) => {
  const seconds = median(figures.map((each) => each.seconds))
  const cpu = median(figures.map((each) => each.cpuSeconds))
  say(
    name.padEnd(34) + cells((sent / seconds).toFixed(0), ((cpu * 1000) / sent).toFixed(2), ...more)
  )
}
say(`\n${"".padEnd(34)}${cells("delivered/s", "CPU ms each", "p50 ms", "p99 ms", "nats-server")}`)
for (const { figures, name } of rows) {
  for (const [i, of] of figures.entries()) {
    const latencies = of.flatMap((each) => each.latencies)
    const texts = [0.5, 0.99].map((share) => percentile(latencies, share).toFixed(1))
    const sent = of[0]!.latencies.length
    const ofNats = median(of.map((each) => each.natsCpuSeconds))
    const whose = i === 0 ? "Bellcast" : "before"
    line(`${whose}, ${name}`, of, sent, ...texts, ((ofNats * 1000) / sent).toFixed(2))
  }
}
line("web-push loop, 100 in flight", peer, count)
say(fsyncOf(nats.folder))
for (const stage of stages) await stage.stop()
process.exit(0)
