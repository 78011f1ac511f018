// `make bench ARGS=trim`: what the deletion of old messages costs publishers. Users join and leave
// a channel; 200 s later, with the short days of the torture rig, their messages are old. It prints
// how long a publisher waits for the 202 before, and while they are deleted. BENCH_USERS (default
// 4000) are the users, each with two messages to delete, 20 publications a second. Five minutes.
import { setTimeout as pause } from "node:timers/promises"
import { call, publish } from "../support/client.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startService } from "../support/service.ts"
import { historyDays, historyMillis, lookMillis } from "../torture/fleet/days.ts"
import { say } from "./print.ts"
import { startNats } from "./servers.ts"

const users = Number(process.env["BENCH_USERS"] ?? 4_000)
const requestsAtOnce = 32
const perSecond = 20
const measuredMillis = 30_000
/** The history may end in the middle of a look. */
const lateMillis = 4 * lookMillis

const nats = await startNats()
const service = await startService({
  natsUrl: nats.url,
  env: {
    BELLCAST_HISTORY_DAYS: String(historyDays),
    BELLCAST_LOG_REQUESTS: "false",
    NODE_OPTIONS: `--import ${new URL("../torture/fleet/short-days.ts", import.meta.url).href}`
  }
})
const admin = await connectAdmin(nats.url)

const deleted = async (): Promise<number> => {
  const { state } = await admin.jsm.streams.info("BELLCAST_LOG")
  return state.last_seq - state.messages
}

/** Joins, and leaves at once. */
const pass = async (user: string): Promise<void> => {
  for (const method of ["PUT", "DELETE"]) {
    const { status } = await call(service.url, method, "/channels/passed/registration", user)
    if (status !== 202) throw new Error(`${method} was answered ${status}`)
  }
}

/** Publishes for half a minute. Returns how long each request took, in milliseconds. */
const measure = async (): Promise<ReadonlyArray<number>> => {
  const took: Array<number> = []
  const open: Array<Promise<void>> = []
  const end = performance.now() + measuredMillis
  while (performance.now() < end) {
    const begin = performance.now()
    open.push(
      publish(service.url, "alone", { n: 1 }).then(() => void took.push(performance.now() - begin))
    )
    await pause(1_000 / perSecond)
  }
  await Promise.all(open)
  return took.sort((a, b) => a - b)
}

const print = (name: string, took: ReadonlyArray<number>, count: number) => {
  const at = (share: number) => `${took[Math.ceil(share * took.length) - 1]!.toFixed(1)} ms`
  say(`${name}: p50 ${at(0.5)}, p99 ${at(0.99)}, at most ${at(1)}; ${count} messages deleted`)
}

// One user stays: otherwise the channel would end, and its counts with it.
await call(service.url, "PUT", "/channels/passed/registration", "stays")
await call(service.url, "PUT", "/channels/alone/registration", "stays")
const names = Array.from({ length: users }, (_, n) => `user${n}`)
const began = performance.now()
await Promise.all(
  Array.from({ length: requestsAtOnce }, async () => {
    for (let name = names.pop(); name !== undefined; name = names.pop()) await pass(name)
  })
)
const before = await deleted()
const quiet = await measure()
print("before", quiet, (await deleted()) - before)
if (performance.now() - began > historyMillis) say("too slow: messages were old before")
for (const end = began + historyMillis + lateMillis; (await deleted()) <= before; ) {
  if (performance.now() > end) throw new Error("nothing is deleted")
  await pause(200)
}
const first = await deleted()
const busy = await measure()
print("meanwhile", busy, (await deleted()) - first)
await admin[Symbol.asyncDispose]()
await service.stop()
await nats.stop()
process.exit(0)
