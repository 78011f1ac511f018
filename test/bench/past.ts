// `make bench ARGS=past`: what `--at` takes among a million messages of LOG, as a process of its
// own, with the most memory that the process had. BENCH_MESSAGES (default 1000000) is their number.
// The service is away: only what LOG says counts.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { jetstreamManager } from "@nats-io/jetstream"
import { connect, headers } from "@nats-io/transport-node"
import { Effect } from "effect"
import { provision } from "#nats/admin/provision.ts"
import { natsLayer } from "#nats/layer.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken, type UserToken } from "#streams/tokens.ts"
import { secretEnvironment } from "../support/service.ts"
import { idOf, tokenOf } from "../support/users.ts"
import { say } from "./print.ts"
import { startNats } from "./servers.ts"

const messages = Number(process.env["BENCH_MESSAGES"] ?? 1_000_000)
const smallChannel = 10_000
const rounds = 3
/** Messages that are stored between two looks whether the server has them. */
const storedAtOnce = 5_000

const nats = await startNats()
await Effect.runPromise(
  provision(1).pipe(Effect.provide(natsLayer({ url: nats.url, name: "fill" })), Effect.scoped)
)
const nc = await connect({ servers: nats.url })
const jsm = await jetstreamManager(nc)

const tokenAt = (n: number) => {
  const bytes = Buffer.alloc(16)
  bytes.writeUInt32BE(n, 12)
  return bytes.toString("base64url") as UserToken
}
const type = headers()
type.set("Bellcast-Type", "registration.put/1")
const at = Date.now()
const join = (channel: string, user: UserToken, name: string) =>
  nc.publish(
    subjects.registration(channelToken(channel), user),
    JSON.stringify({ user: `openid:${name}`, at }),
    { headers: type }
  )
/** One message in a hundred is of the small channel; the user joins both. */
for (let n = 0; n < messages; n++) {
  const isSmall = n % Math.floor(messages / smallChannel) === 0
  join(isSmall ? "small" : "large", tokenAt(n), String(n))
  if (n % storedAtOnce !== storedAtOnce - 1) continue
  while ((await jsm.streams.info("BELLCAST_LOG")).state.messages <= n)
    await new Promise((resolve) => setTimeout(resolve, 5))
}
for (const channel of ["small", "large"]) join(channel, tokenOf("user0"), "user0")
await nc.close()

const peakOf = (pid: number): number => {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8")
    return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024
  } catch {
    return 0
  }
}

/** Seconds and MiB of `bellcast VERB … --at`, its start included, and the lines that it printed. */
const ask = async (...args: ReadonlyArray<string>) => {
  const begin = performance.now()
  const own = ["src/cli/main.ts", ...args, "--at", new Date().toISOString(), "--nats", nats.url]
  const child = spawn(process.execPath, [...own, "--json"], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...secretEnvironment }
  })
  let lines = 0
  let mebibytes = 0
  const looks = setInterval(() => {
    mebibytes = Math.max(mebibytes, peakOf(child.pid!))
  }, 20)
  child.stdout.setEncoding("utf8").on("data", (part: string) => {
    lines += part.split("\n").length - 1
  })
  const [code] = await once(child, "close")
  clearInterval(looks)
  if (code !== 0) throw new Error(`${args.join(" ")}: ${code}`)
  return { lines, mebibytes, seconds: (performance.now() - begin) / 1_000 }
}

say(`${messages} messages of LOG; Node ${process.versions.node}\n`)
const row = (name: string, cells: ReadonlyArray<string | number>) =>
  say(`${name.padEnd(40)}${cells.map((cell) => String(cell).padStart(10)).join("")}`)
row("", ["seconds", "lines", "lines/s", "MiB"])
for (const [name, ...args] of [
  ["permissions list", "permissions", "list"],
  ["user show, on two channels", "user", "show", idOf("user0")],
  ["audit --user", "audit", "--user", idOf("user0")],
  [`channel show, ${smallChannel} members`, "channel", "show", "small"],
  ["channel show, the others", "channel", "show", "large"]
] as const) {
  const found = []
  for (let i = 0; i < rounds; i++) found.push(await ask(...args))
  const { lines, mebibytes, seconds } = found.sort((a, b) => a.seconds - b.seconds)[1]!
  row(name, [seconds.toFixed(2), lines, Math.round(lines / seconds), mebibytes.toFixed(0)])
}
await nats.stop()
process.exit(0)
