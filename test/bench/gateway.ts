// `make bench`, second part: what requests cost in the gateway, in CPU and in time, at 1, 50 and
// 200 connections, beside bare node:http and a bare conditional publish in the same run. The
// gateway runs alone in a process, the other stages in a second one, log on disk with sync always.
// A request's CPU is that of the process that answers; nats-server's and the other stages' stand
// apart, on both sides. It is compared with the sum of the bare parts, each measured alone and so
// as busy as can be, and with the two in one process, which wakes up as often as the gateway does.
// BENCH_ROUNDS (default 3) and BENCH_MILLIS (default 1200, one measurement) set the size;
// BENCH_PROFILE: a folder for a CPU profile of the gateway.
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { cpus } from "node:os"
import { fileURLToPath } from "node:url"
import { makeReceiverKeys } from "#cli/listen/push-receiver.ts"
import { startService } from "../support/service.ts"
import { cpuSecondsOf, idle } from "./cpu.ts"
import { type Answered, load, type Order, wire } from "./load.ts"
import { median, say } from "./print.ts"
import { startNats } from "./servers.ts"

const rounds = Number(process.env["BENCH_ROUNDS"] ?? 3)
const millis = Number(process.env["BENCH_MILLIS"] ?? 1_200)
const profile = process.env["BENCH_PROFILE"]
const connectionsList = [1, 50, 200]
const [bareHttp, barePublish, bareBoth] = [
  "bare node:http",
  "bare conditional publish",
  "the two in one process"
]
/** Until V8 has compiled what a request needs: the first 10,000 cost twice as much. */
const warmUpMillis = 5_000
const broadcast = { data: { title: "Bellcast", body: "x".repeat(240) } }

const child = async (
  ...args: ReadonlyArray<string>
): Promise<{ readonly child: ChildProcess; readonly port: number }> => {
  const child = fork(fileURLToPath(new URL("bare.ts", import.meta.url)), args, { execArgv: [] })
  const [port] = await once(child, "message")
  return { child, port }
}

const nats = await startNats()
const natsUrl = nats.url
await using gateway = await startService({
  natsUrl,
  roles: "gateway",
  forgets: true,
  env: profile === undefined ? {} : { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${profile}` }
})
await using others = await startService({
  natsUrl,
  roles: "projection,fanout,delivery,tally",
  forgets: true
})
const http = await child("http")
const both = await child("both", natsUrl)
const publisher = await child("publish", natsUrl, JSON.stringify(broadcast))

let users = 0
const { auth, p256dh } = makeReceiverKeys()
const subscription = (n: number) => ({
  data: { endpoint: `https://fcm.googleapis.com/fcm/send/${n}`, keys: { auth, p256dh } }
})
const requests =
  (status: number, next: () => string, port = gateway.port) =>
  (order: Order) =>
    load({ ...order, port, status, next })
const publish = wire("POST", "/v1/channels/empty", "publisher", broadcast)

interface Subject {
  readonly name: string
  readonly pid: number
  readonly run: (order: Order) => Promise<Answered>
}

const subjects: ReadonlyArray<Subject> = [
  { name: bareHttp, pid: http.child.pid!, run: requests(202, () => publish, http.port) },
  {
    name: barePublish,
    pid: publisher.child.pid!,
    run: async (order) => {
      publisher.child.send(order)
      return (await once(publisher.child, "message"))[0]
    }
  },
  { name: bareBoth, pid: both.child.pid!, run: requests(202, () => publish, both.port) },
  {
    name: "GET /",
    pid: gateway.process.pid!,
    run: requests(200, () => wire("GET", "/v1/", "reader", undefined))
  },
  {
    name: "POST /subscriptions, new",
    pid: gateway.process.pid!,
    run: requests(201, () =>
      wire("POST", "/v1/subscriptions", `user${++users}`, subscription(users))
    )
  },
  {
    name: "PUT registration, new",
    pid: gateway.process.pid!,
    run: requests(202, () =>
      wire("PUT", "/v1/channels/bench/registration", `user${++users}`, undefined)
    )
  },
  { name: "POST channel, empty", pid: gateway.process.pid!, run: requests(202, () => publish) }
]

interface Figures extends Answered {
  readonly cpuMicros: number
  readonly natsMicros: number
  readonly othersMicros: number
}

const everybody = [gateway.process.pid!, others.process.pid!, nats.pid]
const measure = async ({ pid, run }: Subject, order: Order): Promise<Figures> => {
  const read = () => [pid, nats.pid, others.process.pid!].map(cpuSecondsOf)
  const before = read()
  const answered = await run(order)
  // What is left to do for these requests belongs to them, and must not disturb the next.
  await idle(everybody)
  const [cpuMicros = 0, natsMicros = 0, othersMicros = 0] = read().map(
    (after, i) => ((after - before[i]!) * 1e6) / answered.requests
  )
  return { ...answered, cpuMicros, natsMicros, othersMicros }
}

const results = new Map<string, Array<Figures>>()
for (const subject of subjects)
  await measure(subject, { connections: Math.max(...connectionsList), millis: warmUpMillis })
for (let round = 0; round < rounds; round++) {
  for (const subject of subjects) {
    for (const connections of connectionsList) {
      const key = `${subject.name} ${connections}`
      results.set(key, [
        ...(results.get(key) ?? []),
        await measure(subject, { connections, millis })
      ])
    }
  }
}

const of = (name: string, connections: number, what: (figures: Figures) => number): number =>
  median((results.get(`${name} ${connections}`) ?? []).map(what))

say(
  `Gateway: ${cpus().length} cores (${cpus()[0]?.model.trim()}), Node ${process.versions.node}; ` +
    `median of ${rounds} rounds of ${millis} ms; CPU in us a request`
)
for (const connections of connectionsList) {
  const heads = [
    "requests/s",
    "p50 ms",
    "p99 ms",
    "CPU",
    "nats-server",
    "other stages",
    "of the sum",
    "of the two"
  ]
  say(
    `\n${`${connections} connection${connections === 1 ? "" : "s"}`.padEnd(28)}` +
      heads.map((head) => head.padStart(13)).join("")
  )
  const cpuOf = (name: string) => of(name, connections, ({ cpuMicros }) => cpuMicros)
  const sum = cpuOf(bareHttp) + cpuOf(barePublish)
  for (const { name } of subjects) {
    const figure = (what: (figures: Figures) => number, digits: number) =>
      of(name, connections, what).toFixed(digits)
    const cells = [
      figure(({ requests, seconds }) => requests / seconds, 0),
      figure(({ p50Millis }) => p50Millis, 2),
      figure(({ p99Millis }) => p99Millis, 2),
      figure(({ cpuMicros }) => cpuMicros, 0),
      figure(({ natsMicros }) => natsMicros, 0),
      figure(({ othersMicros }) => othersMicros, 0),
      `${(cpuOf(name) / sum).toFixed(2)} x`,
      `${(cpuOf(name) / cpuOf(bareBoth)).toFixed(2)} x`
    ]
    say(`${name.padEnd(28)}${cells.map((cell) => cell.padStart(13)).join("")}`)
  }
}
for (const { child } of [http, both, publisher]) child.kill()
await gateway.stop()
await others.stop()
await nats.stop()
process.exit(0)
