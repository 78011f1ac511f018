// `make bench ARGS=million`: the cost of a large store. It fills a store by `bellcast import` with
// 100,000 subscriptions, and then one with 1,000,000 (BENCH_SIZES). For both it prints the cost of
// filling, of a restart, `verify`, `rebuild` and a broadcast to all, and the ratio of the two. It
// asserts nothing, but ends with an error if a push is missed. An hour, 8 GB of memory, 20 of disk.
import { spawn } from "node:child_process"
import { once } from "node:events"
import {
  createWriteStream,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync
} from "node:fs"
import { cpus, tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { Effect } from "effect"
import { launch } from "#embedded/launch.ts"
import { locateNatsServer } from "#embedded/program/locate.ts"
import { finished, publish } from "../support/client.ts"
import { formerKeys, formerPair, settingsOn } from "../support/imports.ts"
import { type Service, settingsFile, sources, startService } from "../support/service.ts"
import type { SpawnedPushService } from "../support/spawn-push-service.ts"
import { trustingEnvironment } from "../support/tls.ts"
import { cpuSecondsOf, idle } from "./cpu.ts"
import { say } from "./print.ts"
import { startSink } from "./servers.ts"

const sizes = (process.env["BENCH_SIZES"] ?? "100000,1000000").split(",").map(Number)
/** Channels with one subscriber, which get a broadcast in turn beside the large one. */
const smallCount = 200
const smallEveryMillis = 2_000
/** Subscriptions that are made, and written to the file of the import, at a time. */
const chunk = 5_000
/** The bench gives up where no store of a million would need as long. */
const longMillis = 4 * 3_600_000
const data = { title: "Bellcast", body: "x".repeat(240) }

/** Figures of one size, by name, in the order in which they are printed. */
class Figures extends Map<string, number> {
  /** An hour is long: each figure is printed at once, too. */
  override set(name: string, value: number): this {
    say(`${name}: ${shown(value)}`)
    return super.set(name, value)
  }
}

const shown = (value: number): string => (value < 100 ? value.toFixed(2) : value.toFixed(0))

const mebibytesOf = (pid: number, field: "VmHWM" | "VmRSS"): number => {
  const status = readFileSync(`/proc/${pid}/status`, "utf8")
  // A process that has ended has no memory.
  return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1024
}

const mebibytesIn = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { name, parentPath }) => sum + statSync(join(parentPath, name)).size, 0) /
  1024 ** 2

/** Prints what the service logs as a warning or an error: an hour is too long to ask again. */
const sayProblems = (text: string) => {
  for (const line of text.split("\n")) if (/"level":[456]0/.test(line)) say(line)
}

/** Runs a verb to its end. Resolves with its seconds and the memory that it had at most. */
const run = async (natsUrl: string, args: ReadonlyArray<string>) => {
  const begin = performance.now()
  const child = spawn(process.execPath, [join(sources, "src/cli/main.ts"), ...args], {
    env: { ...process.env, ...settingsFile(undefined), ...settingsOn(natsUrl) },
    stdio: ["ignore", "pipe", "pipe"]
  })
  let output = ""
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output = (output + text).slice(-2_000)
    })
  let highest = 0
  const look = setInterval(() => {
    if (child.exitCode === null) highest = Math.max(highest, mebibytesOf(child.pid!, "VmHWM"))
  }, 200)
  const [code] = await once(child, "close")
  clearInterval(look)
  if (code !== 0) throw new Error(`${args[0]} ended with ${code}: ${output}`)
  return { seconds: (performance.now() - begin) / 1_000, highest }
}

/** Writes the lines of an import: `size` subscriptions, and one for each small channel. */
const writeLines = async (sink: SpawnedPushService, file: string, size: number) => {
  const stream = createWriteStream(file)
  const options = { applicationServerKey: formerPair.publicKey }
  for (let written = 0; written < size; written += chunk) {
    const some = await sink.subscribe(Math.min(chunk, size - written), options)
    const text = some.map((each) => `${JSON.stringify(each)}\n`).join("")
    if (!stream.write(text)) await once(stream, "drain")
  }
  stream.end()
  await once(stream, "close")
}

const writeSmall = async (sink: SpawnedPushService, file: string) => {
  const stream = createWriteStream(file)
  const options = { applicationServerKey: formerPair.publicKey }
  for (const [i, each] of (await sink.subscribe(smallCount, options)).entries())
    stream.write(`${JSON.stringify({ ...each, channels: [`small-${i}`] })}\n`)
  stream.end()
  await once(stream, "close")
}

/** A broadcast to all, while small ones are published one after the other. */
const broadcastToAll = async (
  service: Service,
  sink: SpawnedPushService,
  size: number,
  figures: Figures
) => {
  const pid = service.process.pid!
  await sink.reset()
  await idle([pid], longMillis)
  const before = cpuSecondsOf(pid)
  const id = await publish(service.url, "all", data)
  const acceptedAt = performance.timeOrigin + performance.now()
  let isOver = false
  const small = (async () => {
    const published: Array<number> = []
    while (!isOver && published.length < smallCount) {
      await publish(service.url, `small-${published.length}`, data)
      published.push(performance.timeOrigin + performance.now())
      await pause(smallEveryMillis)
    }
    return published
  })()
  await finished(service.url, "all", id, longMillis)
  isOver = true
  const published = await small
  await sink.waitForDistinct(size + published.length, 60_000)
  const first = (await sink.receipts(0, size)).toSorted((a, b) => a - b)
  const beside = await sink.receipts(size, published.length)
  figures.set("first receipt, ms", first[0]! - acceptedAt)
  figures.set("last receipt, s", (first.at(-1)! - acceptedAt) / 1_000)
  figures.set(
    "longest wait of a small broadcast beside it, ms",
    Math.max(...beside.map((at, i) => at - published[i]!))
  )
  await idle([pid], longMillis)
  figures.set("CPU for 1,000 pushes, s", ((cpuSecondsOf(pid) - before) * 1_000) / size)
  figures.set("service at its highest, MiB", mebibytesOf(pid, "VmHWM"))
}

const measure = async (size: number): Promise<Figures> => {
  say(`\n${size} subscriptions`)
  const figures = new Figures()
  const folder = mkdtempSync(join(tmpdir(), "bellcast-bench-"))
  const [lines, smallLines] = [join(folder, "all.ndjson"), join(folder, "small.ndjson")]
  await using sink = await startSink()
  await writeLines(sink, lines, size)
  await writeSmall(sink, smallLines)
  const binary = await Effect.runPromise(locateNatsServer)
  const natsFolder = join(folder, "nats")
  let nats = await launch({ binary, folder: natsFolder })
  const start = (natsUrl: string) =>
    startService({
      natsUrl,
      env: { ...trustingEnvironment, ...formerKeys },
      readyTimeoutMillis: longMillis,
      forgets: true,
      printed: sayProblems
    })
  let service = await start(nats.url)
  const bring = (file: string, ...more: ReadonlyArray<string>) =>
    run(nats.url, ["import", file, "--vapid-public-key", formerPair.publicKey, ...more])

  figures.set("imported a second", size / (await bring(lines)).seconds)
  figures.set("joined a second", size / (await bring(lines, "--channel", "all")).seconds)
  await bring(smallLines)
  await idle([service.process.pid!, nats.pid], longMillis)
  figures.set("service after filling, MiB", mebibytesOf(service.process.pid!, "VmRSS"))
  figures.set("nats-server after filling, MiB", mebibytesOf(nats.pid, "VmRSS"))
  await service.stop()
  await nats.stop()
  figures.set("disk, MiB", mebibytesIn(natsFolder))

  const restartedAt = performance.now()
  nats = await launch({ binary, folder: natsFolder })
  figures.set("nats-server starts, s", (performance.now() - restartedAt) / 1_000)
  figures.set("nats-server after a restart, MiB", mebibytesOf(nats.pid, "VmRSS"))
  const rebuilt = await run(nats.url, ["rebuild"])
  figures.set("rebuild, s", rebuilt.seconds)
  figures.set("rebuild at its highest, MiB", rebuilt.highest)
  const startedAt = performance.now()
  service = await start(nats.url)
  figures.set("from start to ready, ms", performance.now() - startedAt)
  const verified = await run(nats.url, ["verify"])
  figures.set("verify, s", verified.seconds)
  figures.set("verify at its highest, MiB", verified.highest)
  await broadcastToAll(service, sink, size, figures)
  await service.stop()
  await nats.stop()
  rmSync(folder, { recursive: true, force: true })
  return figures
}

say(`${cpus().length} cores (${cpus()[0]?.model.trim()}), Node ${process.versions.node}`)
const all: Array<Figures> = []
for (const size of sizes) all.push(await measure(size))
const cells = (texts: ReadonlyArray<string>) => texts.map((text) => text.padStart(12)).join("")
say(`\n${" ".repeat(48)}${cells([...sizes.map(String), "ratio"])}`)
for (const name of all[0]!.keys()) {
  const values = all.map((figures) => figures.get(name)!)
  const ratio = values.at(-1)! / values[0]!
  say(`${name.padEnd(48)}${cells([...values.map(shown), `${ratio.toFixed(2)} x`])}`)
}
process.exit(0)
