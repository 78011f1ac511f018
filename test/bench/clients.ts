// `make bench ARGS=clients`: every kind of hostile client at once (hostile-clients.ts) beside
// honest traffic (lists, registrations, broadcasts to a push service), and what the honest client
// notices. BENCH_MINUTES (default 1) says how long; the first half minute before the attack is for
// comparison. Prints figures every 10 s and at the end, and whether memory and descriptors were
// level.
import { fork } from "node:child_process"
import { cpus } from "node:os"
import { fileURLToPath } from "node:url"
import { makeReceiverKeys } from "#cli/listen/push-receiver.ts"
import { Honest, type Latencies, summaryOf } from "../support/hostile/honest.ts"
import { descriptorsOf, mebibytesOf } from "../support/hostile/process.ts"
import { pause } from "../support/hostile/socket.ts"
import { startService } from "../support/service.ts"
import { spawnPushService } from "../support/spawn-push-service.ts"
import { cpuSecondsOf } from "./cpu.ts"
import { say } from "./print.ts"
import { startNats } from "./servers.ts"

const minutes = Number(process.env["BENCH_MINUTES"] ?? 1)
const everyMillis = 10_000
const calmMillis = 30_000
const users = 40
/** Between two rounds of the honest client: it is one client, not a load. */
const roundMillis = 100

const nats = await startNats()
await using push = await spawnPushService({ decrypt: false })
await using service = await startService({ natsUrl: nats.url, forgets: true })
const pid = service.process.pid!
const endpoints = (await push.subscribe(users)).map(({ endpoint }) => endpoint)
const honest = new Honest({ url: service.url, endpoints })

interface Sample extends Latencies {
  readonly mebibytes: number
  readonly descriptors: number
  readonly failures: number
}
const samples: Array<Sample> = []
const millis: Array<number> = []
let made: Readonly<Record<string, number>> = {}

/** As many and as large subscriptions as a user may have: what the hostile client lists. */
const storeHostile = async () => {
  const { auth, p256dh } = makeReceiverKeys()
  for (let n = 0; n < 50; n++) {
    const data = { endpoint: `http://127.0.0.1:1/${n}`, keys: { auth, p256dh } }
    const body = { data: { ...data, m: Array.from({ length: 1_500 }, () => 1) } }
    const ask = { method: "POST", path: "/subscriptions", user: "hostile", body }
    const { status, text } = await honest.send(ask)
    if (status !== 201) throw new Error(`not stored: ${status} ${text}`)
  }
  honest.take()
}

/** Honest rounds for so many milliseconds, with a line every 10 s. */
const watch = async (title: string, forMillis: number) => {
  say(`\n${title}`)
  say("     s  requests  p50 ms  p99 ms  max ms  failed  RSS MiB  descriptors  CPU %  hostile")
  const start = performance.now()
  let cpu = cpuSecondsOf(pid)
  let next = everyMillis
  while (performance.now() - start < forMillis) {
    await honest.round()
    await pause(roundMillis)
    const now = performance.now() - start
    if (now < next) continue
    const taken = honest.takeMillis()
    millis.push(...taken)
    const latencies = summaryOf(taken)
    const used = cpuSecondsOf(pid)
    const figures = { mebibytes: mebibytesOf(pid), descriptors: descriptorsOf(pid) }
    samples.push({ ...latencies, ...figures, failures: honest.failures.length })
    const cells = [
      (now / 1_000).toFixed(0).padStart(6),
      String(latencies.requests).padStart(10),
      ...[latencies.p50, latencies.p99, latencies.max].map((value) => value.toFixed(1).padStart(8)),
      String(honest.failures.length).padStart(8),
      figures.mebibytes.toFixed(0).padStart(9),
      String(figures.descriptors).padStart(13),
      (((used - cpu) / (now - next + everyMillis)) * 100_000).toFixed(0).padStart(7),
      String(Object.values(made).reduce((sum, count) => sum + count, 0)).padStart(9)
    ]
    say(cells.join(""))
    cpu = used
    next += everyMillis
  }
}

const average = (some: ReadonlyArray<Sample>, of: (sample: Sample) => number): number =>
  some.reduce((sum, sample) => sum + of(sample), 0) / some.length

/** The last minute against the first: level is at most a tenth more, and a little noise. */
const level = (name: string, of: (sample: Sample) => number, noise: number) => {
  const count = Math.min(6, Math.floor(samples.length / 2))
  const [first, last] = [average(samples.slice(0, count), of), average(samples.slice(-count), of)]
  const word = last <= first * 1.1 + noise ? "level" : "NOT level"
  say(`${name}: ${first.toFixed(0)} at first, ${last.toFixed(0)} at last: ${word}`)
}

say(`${cpus().length} cores (${cpus()[0]?.model.trim()}), Node ${process.versions.node}`)
await storeHostile()
await watch("Without hostile clients", calmMillis)
const calm = { descriptors: descriptorsOf(pid) }
samples.length = 0
millis.length = 0
const file = fileURLToPath(new URL("hostile-clients.ts", import.meta.url))
const attackMillis = minutes * 60_000
const hostile = fork(file, [String(service.port), String(attackMillis)], { execArgv: [] })
const hostileEnded = new Promise<void>((resolve) => hostile.once("exit", () => resolve()))
hostile.on("message", (counts) => {
  made = counts as Record<string, number>
})
await watch(`With hostile clients, ${minutes} min`, attackMillis)
// What came after the last line counts for the end.
millis.push(...honest.takeMillis())
await Promise.race([hostileEnded, pause(30_000)])
hostile.kill()

say(`\n${service.process.exitCode === null ? "The process lives." : "THE PROCESS HAS ENDED."}`)
const all = summaryOf(millis)
const [p50, p99, max] = [all.p50, all.p99, all.max].map((value) => value.toFixed(1))
say(`honest: ${all.requests} requests, p50 ${p50} ms, p99 ${p99} ms, max ${max} ms`)
say(`honest requests that failed: ${honest.failures.length}`)
for (const failure of honest.failures.slice(0, 10)) say(`  ${failure}`)
level("RSS in MiB", ({ mebibytes }) => mebibytes, 30)
level("open descriptors", ({ descriptors }) => descriptors, 20)
say(`open descriptors before ${calm.descriptors}, now ${descriptorsOf(pid)}`)
const { counts } = await push.report()
say(`pushes delivered: ${counts.total}`)
say("hostile connections:")
for (const [kind, count] of Object.entries(made)) say(`  ${kind.padEnd(28)}${count}`)
honest.close()
await service.stop()
await nats.stop()
process.exit(0)
