// `make bench ARGS=flood`: what made-up users cost. Users with a subscription and a registration
// each are made as fast as the service takes them, without its limits; then broadcasts are sent.
// Prints the bytes of each stream and bucket, the disk, and the memory of each process. The limits
// are switched on for the last part: what one address and ten make in a minute.
// BENCH_USERS (default 100000) and BENCH_SUBSCRIBERS (default 1000) set the size.
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { cpus } from "node:os"
import { makeReceiverKeys } from "#cli/listen/push-receiver.ts"
import { endpointHash } from "#domain/subscription/owners.ts"
import { call, finished, join, publish } from "../support/client.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startService } from "../support/service.ts"
import { spawnPushService } from "../support/spawn-push-service.ts"
import { idle } from "./cpu.ts"
import { load, wire } from "./load.ts"
import { say } from "./print.ts"
import { startNats } from "./servers.ts"

const users = Number(process.env["BENCH_USERS"] ?? 100_000)
const subscribers = Number(process.env["BENCH_SUBSCRIBERS"] ?? 1_000)
const broadcasts = 20
const connections = 50

const nats = await startNats()
const start = (roles: string, env = {}) =>
  startService({ natsUrl: nats.url, roles, env, forgets: true })
await using gateway = await start("gateway")
await using projection = await start("projection")
await using others = await start("fanout,delivery,tally")
await using push = await spawnPushService({ decrypt: false })
await using admin = await connectAdmin(nats.url)

const pids = {
  "nats-server": nats.pid,
  gateway: gateway.process.pid!,
  projection: projection.process.pid!,
  others: others.process.pid!
}
const mebibytes = (pid: number, field: string) =>
  Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) /
  1024

/** The bytes of each stream, without those of leases and checkpoints, which change all the time. */
const sizes = async () => {
  await idle(Object.values(pids), 300_000)
  const bytes: Record<string, number> = {}
  for await (const { config, state } of admin.jsm.streams.list())
    if (config.name !== "KV_bellcast_cache") bytes[config.name] = state.bytes
  return bytes
}
const disk = () => Number(execFileSync("du", ["-sk", nats.folder]).toString().split("\t")[0]) / 1024

const report = async (
  what: string,
  count: number,
  run: () => Promise<unknown>,
  before: Record<string, number>
) => {
  const began = performance.now()
  await run()
  const seconds = (performance.now() - began) / 1000
  const after = await sizes()
  say(`\n${what}: ${count} in ${seconds.toFixed(1)} s`)
  for (const [name, bytes] of Object.entries(after)) {
    const more = bytes - (before[name] ?? 0)
    if (more !== 0) say(`  ${name.padEnd(26)} ${(more / count).toFixed(1)} bytes each, ${bytes}`)
  }
  const memory = Object.entries(pids).map(
    ([name, pid]) =>
      `${name} ${mebibytes(pid, "VmRSS").toFixed(0)} (most ${mebibytes(pid, "VmHWM").toFixed(0)})`
  )
  say(`  disk ${disk().toFixed(0)} MiB; memory in MiB: ${memory.join(", ")}`)
  return after
}

/** As long as Chrome's: 188 characters. */
const endpointOf = (n: number) =>
  `https://fcm.googleapis.com/fcm/send/${String(n).padStart(11, "0")}:APA91b${"x".repeat(134)}`
const { auth, p256dh } = makeReceiverKeys()
let n = 0
const flood = (requests: number, status: number, next: (n: number) => string) => () => {
  n = 0
  return load({
    port: gateway.port,
    connections,
    millis: 3_600_000,
    requests,
    status,
    next: () => next(++n)
  })
}
const subscribe = (i: number) =>
  wire("POST", "/v1/subscriptions", `user${i}`, {
    data: { endpoint: endpointOf(i), keys: { auth, p256dh } }
  })
const register = (i: number) =>
  wire("PUT", "/v1/channels/flood/registration", `user${i}`, undefined)
const renew = (i: number) => {
  const endpoint = endpointOf(1 + (i % users))
  const data = { endpoint, keys: { auth, p256dh } }
  const path = `/v1/subscriptions/${endpointHash(endpoint)}`
  return wire("PUT", path, `user${1 + (i % users)}`, { data })
}

const [cpu] = cpus()
const version = execFileSync(nats.binary, ["--version"]).toString().trim()
say(`${users} users, ${cpus().length} cores of ${cpu?.model.trim()}, ${version}`)
let state = await report("a start", 1, () => Promise.resolve(), {})
state = await report("subscriptions of new users", users, flood(users, 201, subscribe), state)
state = await report("registrations", users, flood(users, 202, register), state)
state = await report("the same subscriptions, by PUT", 10_000, flood(10_000, 200, renew), state)

const agents = await push.subscribe(subscribers)
state = await report(
  "users with a subscription and a registration",
  subscribers,
  () => join([gateway.url], "news", agents, 24, "reader"),
  state
)
const title = { title: "Hello" }
state = await report(
  "broadcasts to nobody",
  broadcasts,
  async () => {
    for (let i = 0; i < broadcasts; i++)
      await finished(gateway.url, "empty", await publish(gateway.url, "empty", title))
  },
  state
)
state = await report(
  `broadcasts to ${subscribers} subscriptions, delivered`,
  broadcasts,
  async () => {
    for (let i = 0; i < broadcasts; i++)
      await finished(gateway.url, "news", await publish(gateway.url, "news", title))
  },
  state
)

// With the limits as they are unless somebody sets them, behind a proxy that is trusted.
const limits = {
  BELLCAST_NEW_USERS_PER_ADDRESS_PER_HOUR_MAX: "100",
  BELLCAST_REQUESTS_PER_ADDRESS_PER_MINUTE_MAX: "6000",
  BELLCAST_REQUESTS_PER_USER_PER_MINUTE_MAX: "600",
  BELLCAST_CHANGES_PER_ADDRESS_PER_HOUR_MAX: "3600",
  BELLCAST_CHANGES_PER_USER_PER_HOUR_MAX: "300",
  BELLCAST_NEW_CHANNELS_PER_HOUR_MAX: "80",
  BELLCAST_TRUSTED_PROXIES: "127.0.0.1"
}
await using limited = await start("gateway", limits)

let lastAddress = 0
/** Users whom `userOf` names make subscriptions, or registrations, from some addresses. */
const attempt = async (
  what: string,
  addresses: number,
  count: number,
  userOf: (i: number) => string
) => {
  const answers = new Map<string, number>()
  const began = performance.now()
  const from = async (address: number) => {
    for (let i = 0; i < count; i++) {
      const data = { endpoint: endpointOf(i), keys: { auth, p256dh } }
      const user = `${what}-${address}-${userOf(i)}`
      const header = { "x-forwarded-for": `192.0.2.${address}` }
      const path = `/channels/c${i}/registration`
      const { body, status } = what.startsWith("users")
        ? await call(limited.url, "POST", "/subscriptions", user, { data }, header)
        : await call(limited.url, "PUT", path, user, undefined, header)
      const text = status < 300 ? String(status) : `${status}/${body.error_code} ${body.message}`
      answers.set(text, (answers.get(text) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: addresses }, () => from(++lastAddress)))
  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  say(`\n${what}, ${count} from each of ${addresses} addresses, in ${seconds} s`)
  for (const [text, times] of answers) say(`  ${times} x ${text}`)
}
await attempt("users made up", 1, 2_000, String)
await attempt("users made up", 10, 200, String)
await attempt("registrations of 40 users", 1, 4_000, (i) => String(i % 40))
for (const each of [gateway, projection, others, limited]) await each.stop()
await nats.stop()
process.exit(0)
