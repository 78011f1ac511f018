// `make bench ARGS=hostile`: hostile push services (test/support/hostile/push-kinds.ts), one kind
// after the other, in a process of their own. Each accepts pushes until it is sent as many at once
// as are allowed, and then does what its kind does. Meanwhile an honest broadcast goes to an
// honest push service every 50 ms, whether the last one has arrived or not. BENCH_SECONDS (default
// 10: of 200 pushes, p99 is the third worst) is how long each kind lasts, BENCH_KINDS names some of
// them, separated by commas.
//
// The hostile process needs CPU, too. So it runs at the lowest priority, and the first rows are
// quiet: without it, and beside it while it uses a whole core for nothing. The first kind accepts
// all it is sent: what the broadcasts themselves cost. "waits" is the share of the time in which
// the service waited for a core. The bound is 250 ms, or three times the first row.
import { readFileSync } from "node:fs"
import { createSecureServer } from "node:http2"
import type { AddressInfo } from "node:net"
import { constants, cpus, setPriority } from "node:os"
import { setTimeout as pause } from "node:timers/promises"
import { makeReceiverKeys } from "#cli/listen/push-receiver.ts"
import { fillChannels } from "../support/fill.ts"
import { summaryOf } from "../support/hostile/honest.ts"
import { pushKinds } from "../support/hostile/push-kinds.ts"
import { spawnHostile } from "../support/hostile/spawn-push.ts"
import { startService } from "../support/service.ts"
import { testCertificate, trustingEnvironment } from "../support/tls.ts"
import { cpuSecondsOf } from "./cpu.ts"
import { say } from "./print.ts"
import { startNats } from "./servers.ts"

const seconds = Number(process.env["BENCH_SECONDS"] ?? 10)
const kinds = process.env["BENCH_KINDS"]?.split(",") ?? Object.keys(pushKinds)
/** Between two honest broadcasts. */
const everyMillis = 50
/** Subscriptions at each hostile push service, and the time between two broadcasts to them. */
const hostileSubscriptions = 600
const hostileMillis = 2_000
/** Pushes that a kind accepts first: the window grows to its widest meanwhile. */
const accepts = 1_200
const boundMillis = 250

/** Takes pushes, and says when the one with a topic came. */
const startHonest = async () => {
  const arrived = new Map<string, number>()
  const server = createSecureServer(
    { ...testCertificate(), allowHTTP1: true },
    (request, response) => {
      request.resume().on("end", () => {
        arrived.set(String(request.headers["topic"]), performance.now())
        response.writeHead(201).end()
      })
    }
  )
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return { arrived, origin: `https://localhost:${(server.address() as AddressInfo).port}` }
}

const { auth, p256dh } = makeReceiverKeys()
const subscriptionsAt = (origin: string, count: number) =>
  Array.from({ length: count }, (_, i) => ({
    endpoint: `${origin}/push/${i}`,
    expirationTime: null,
    keys: { auth, p256dh }
  }))

const nats = await startNats()
const honest = await startHonest()
await using hostile = spawnHostile()
setPriority(hostile.pid, constants.priority.PRIORITY_LOW)
const origins = await Promise.all(kinds.map((kind) => hostile.ask("start", kind, { accepts })))
await using service = await startService({
  natsUrl: nats.url,
  forgets: true,
  env: { ...trustingEnvironment, BELLCAST_RETRY_BASE_MILLIS: "" }
})
await fillChannels(nats.url, [
  { name: "honest", subscriptions: subscriptionsAt(honest.origin, 1) },
  ...origins.map((origin, i) => ({
    name: `hostile${i}`,
    subscriptions: subscriptionsAt(origin, hostileSubscriptions)
  }))
])

const authorization = `Basic ${Buffer.from("publisher:secret").toString("base64")}`
/** Publishes; returns how long the 202 took. The push lives for some seconds only. */
const publish = async (channel: string, topic: string): Promise<number> => {
  const start = performance.now()
  const response = await fetch(`${service.url}/channels/${channel}`, {
    method: "POST",
    headers: { authorization, "content-type": "application/json", ttl: "5", topic },
    body: '{"data":{"n":1}}'
  })
  await response.text()
  if (response.status !== 202) throw new Error(`${channel}: ${response.status}`)
  return performance.now() - start
}

/** Milliseconds for which the main thread of a process has waited for a core (Linux). */
const waitedMillisOf = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[1]) / 1e6

let sequence = 0
/** Honest broadcasts for so long. A push that has not come 10 s later counts as that late. */
const measure = async (millis: number) => {
  const end = performance.now() + millis
  const posts: Array<Promise<number>> = []
  const sentAt = new Map<string, number>()
  const cpu = cpuSecondsOf(service.process.pid!)
  const waited = waitedMillisOf(service.process.pid!)
  const start = performance.now()
  for (let next = start; next < end; next += everyMillis) {
    await pause(Math.max(0, next - performance.now()))
    const topic = `t${sequence++}`
    sentAt.set(topic, performance.now())
    posts.push(publish("honest", topic).catch(() => Number.POSITIVE_INFINITY))
  }
  const used = cpuSecondsOf(service.process.pid!) - cpu
  const passed = performance.now() - start
  const share = (used * 1_000) / passed
  const waits = (waitedMillisOf(service.process.pid!) - waited) / passed
  const late = performance.now() + 10_000
  const isMissing = () => [...sentAt.keys()].some((topic) => !honest.arrived.has(topic))
  while (isMissing() && performance.now() < late) await pause(20)
  const pushes = [...sentAt].map(([topic, at]) => (honest.arrived.get(topic) ?? late) - at)
  return { push: summaryOf(pushes), post: summaryOf(await Promise.all(posts)), share, waits }
}

type Measured = Awaited<ReturnType<typeof measure>>
let bound = boundMillis
const row = (kind: string, { post, push, share, waits }: Measured, connections: string) => {
  const word = push.p99 <= bound && post.p99 < boundMillis ? "" : "  TOO SLOW"
  const cells = [
    kind.padEnd(30),
    push.p50.toFixed(0).padStart(9),
    push.p99.toFixed(0).padStart(9),
    push.max.toFixed(0).padStart(9),
    post.p99.toFixed(0).padStart(9),
    `${(share * 100).toFixed(0)} %`.padStart(7),
    `${(waits * 100).toFixed(0)} %`.padStart(7),
    connections.padStart(13)
  ]
  say(cells.join("") + word)
}

/** Broadcasts to a hostile channel until it is stopped. */
const attackOf = (channel: string) => {
  let isOver = false
  const run = async () => {
    while (!isOver) {
      await publish(channel, "hostile").catch(() => {})
      await pause(hostileMillis)
    }
  }
  const ended = run()
  return async () => {
    isOver = true
    await ended
  }
}

say(`${cpus().length} cores (${cpus()[0]?.model.trim()}), Node ${process.versions.node}`)
say("                                                push ms  POST ms  CPU of service  connections")
say(
  "                                    p50      p99      max      p99    used  waits  at once/all"
)
await measure(2_000)
const quiet = await measure(seconds * 1_000)
bound = Math.max(boundMillis, 3 * quiet.push.p99)
row("quiet", quiet, "")
await hostile.ask("burn", true)
row("quiet, one core burnt", await measure(seconds * 1_000), "")
await hostile.ask("burn", false)
for (const [i, kind] of kinds.entries()) {
  const stop = attackOf(`hostile${i}`)
  // Until the first attack.
  const warm = performance.now() + 5_000
  while ((await hostile.ask("counts", kind)).attacked === 0 && performance.now() < warm)
    await pause(20)
  const measured = await measure(seconds * 1_000)
  await stop()
  const { connections, most } = await hostile.ask("counts", kind)
  await hostile.ask("stop", kind)
  row(kind, measured, `${most}/${connections}`)
}
await service.stop()
await nats.stop()
process.exit(0)
