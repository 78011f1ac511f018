// `make bench ARGS=lists`: how long it takes to find a broadcast again. Pages of lists among many
// broadcasts, over HTTP, and the verb that says whether one of them reached a user, as a process of
// its own. BENCH_BROADCASTS (default 100000) is their number, BENCH_ROUNDS (default 100) the
// requests of a row; a verb runs a tenth as often.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { Effect } from "effect"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { call, finishedAt } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { secretEnvironment, startService } from "../support/service.ts"
import { trustingEnvironment } from "../support/tls.ts"
import { idOf } from "../support/users.ts"
import { say } from "./print.ts"
import { startNats, startSink } from "./servers.ts"

const broadcasts = Number(process.env["BENCH_BROADCASTS"] ?? 100_000)
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 100)
/** One broadcast in a hundred goes to the channel of the user who is looked for. */
const channels = 100
const subscribers = 10
const anna = idOf("user0")
const plannedMillis = 900_000
const data = { title: "Bellcast", body: "x".repeat(240) }

const row = (name: string, millis: ReadonlyArray<number>) => {
  const sorted = millis.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)]!.toFixed(1)
  say(`${name.padEnd(58)}${[0.5, 0.99].map((share) => at(share).padStart(10)).join("")}`)
}

const nats = await startNats()
await using sink = await startSink()
const env = { ...trustingEnvironment, BELLCAST_OPERATOR_PRINCIPALS: idOf("operator") }
await using service = await startService({ natsUrl: nats.url, env })

const subscriptions = await sink.subscribe(subscribers)
await fillChannels(nats.url, [{ name: "channel-0", subscriptions }], { areBasic: true })

/** Appends broadcasts as two internal services do; one in fifty is of the second. */
const ids = await Effect.gen(function* () {
  const log = yield* EventLog
  const append = (i: number) =>
    log.append("log", {
      subject: subjects.broadcast(
        i % 5_000 < channels ? "billing" : "shop",
        channelToken(`channel-${i % channels}`)
      ),
      type: "broadcast",
      body: { data }
    })
  const all = Array.from({ length: broadcasts }, (_, i) => i)
  return yield* Effect.forEach(all, (i) => Effect.map(append(i), ({ seq }) => seq), {
    concurrency: 256
  })
}).pipe(Effect.provide(natsLayer({ url: nats.url, name: "fill" })), Effect.runPromise)
await finishedAt(service.url, `/broadcasts/${Math.max(...ids)}`, "operator", plannedMillis)

const get = async (path: string) => {
  const answer = await call(service.url, "GET", path, "operator")
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status}`)
  return answer.body.data
}
const sortedIds = ids.toSorted((a, b) => a - b)
/** In the middle of the list, to the channel of the user. */
const wanted = ids[Math.floor(broadcasts / channels / 2) * channels]!
const acceptedAt = async (id: number) => (await get(`/broadcasts/${id}`)).accepted_at as number
const middle = new Date(await acceptedAt(sortedIds[Math.floor(broadcasts / 2)]!)).toISOString()

say(`${broadcasts} broadcasts; Node ${process.versions.node}\n`)
say(`${"".padEnd(58)}${["p50 ms", "p99 ms"].map((text) => text.padStart(10)).join("")}`)
for (const path of [
  "/broadcasts",
  "/broadcasts?_limit=10",
  `/broadcasts?before=${encodeURIComponent(middle)}`,
  "/broadcasts?publisher=nats:billing",
  "/broadcasts?state=paused",
  "/channels/channel-0/broadcasts",
  `/channels/channel-0/broadcasts?before=${encodeURIComponent(middle)}`,
  `/broadcasts/${wanted}`
]) {
  const took: Array<number> = []
  for (let i = 0; i < rounds; i++) {
    const begin = performance.now()
    await get(path)
    took.push(performance.now() - begin)
  }
  row(`GET ${path}`, took)
}

/** The milliseconds of `bellcast VERB …`, its start included. */
const verb = async (...args: ReadonlyArray<string>) => {
  const begin = performance.now()
  const child = spawn(process.execPath, ["src/cli/main.ts", ...args, "--nats", nats.url], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...secretEnvironment }
  })
  let text = ""
  child.stdout.setEncoding("utf8").on("data", (part: string) => {
    text += part
  })
  const [code] = await once(child, "close")
  if (code !== 0 || !text.includes("delivered")) throw new Error(`${args.join(" ")}: ${text}`)
  return performance.now() - begin
}
const at = await acceptedAt(wanted)
const time = (millis: number) => new Date(millis).toISOString()
const times = ["--since", time(at - 60_000), "--before", time(at + 60_000)]
for (const [name, ...args] of [
  ["audit --user ANNA"],
  ["audit --user ANNA --channel channel-0, two minutes", "--channel", "channel-0", ...times],
  ["audit BROADCAST --user ANNA", String(wanted)]
] as const) {
  const took: Array<number> = []
  for (let i = 0; i < rounds / 10; i++) took.push(await verb("audit", "--user", anna, ...args))
  row(name, took)
}
await service.stop()
await nats.stop()
process.exit(0)
