// `make bench ARGS=strangers`: how long a publisher's list of broadcasts takes while 20 users
// without any right list as fast as they are served. The store has 220 broadcasts of that
// publisher to users, each with 20 variants, which take several messages of LOG. Quiet rows stand
// before and after, as the machine's speed may change. BENCH_ROUNDS (default 60) is the number of
// the publisher's requests in a row.
import { call, finishedAt, publishAt } from "../support/client.ts"
import { startService } from "../support/service.ts"
import { idOf } from "../support/users.ts"
import { median, say } from "./print.ts"
import { startNats } from "./servers.ts"

const rounds = Number(process.env["BENCH_ROUNDS"] ?? 60)
const broadcasts = 220
const strangers = 20
const data_by_locale = Object.fromEntries(
  [..."abcdefghijklmnopqrst"].map((letter) => [`${letter}a`, { text: "x".repeat(1_000) }])
)

const nats = await startNats()
await using service = await startService({
  natsUrl: nats.url,
  env: {
    BELLCAST_USER_WRITE_PRINCIPALS: idOf("publisher"),
    BELLCAST_CHANNEL_WRITE_PRINCIPALS: idOf("publisher"),
    BELLCAST_OPERATOR_PRINCIPALS: idOf("operator")
  }
})
const body = { data: { n: 1 }, data_by_locale, to: { users: [idOf("anna")] } }
let last = ""
for (let i = 0; i < broadcasts; i++) last = await publishAt(service.url, "/broadcasts", body)
await finishedAt(service.url, `/broadcasts/${last}`, "operator")

const list = async (user: string): Promise<number> => {
  const begin = performance.now()
  const { status } = await call(service.url, "GET", "/broadcasts", user)
  // A stranger's list is refused when it waits too long for its turn.
  const isRefused = status === 503 && user !== "publisher"
  if (status !== 200 && !isRefused) throw new Error(`${user}: ${status}`)
  return performance.now() - begin
}

const row = async (name: string): Promise<number> => {
  const took: Array<number> = []
  for (let i = 0; i < rounds; i++) took.push(await list("publisher"))
  const sorted = took.toSorted((a, b) => a - b)
  const p99 = sorted[Math.floor((rounds - 1) * 0.99)]!
  say(`${name.padEnd(26)}${median(took).toFixed(1).padStart(10)}${p99.toFixed(1).padStart(10)}`)
  return median(took)
}

say(`${broadcasts} broadcasts; Node ${process.versions.node}\n`)
say(`${"".padEnd(26)}${["p50 ms", "p99 ms"].map((text) => text.padStart(10)).join("")}`)
await row("warm-up")
const before = await row("alone")
let isOver = false
let served = 0
const loops = Array.from({ length: strangers }, async (_, i) => {
  while (!isOver) {
    await list(`stranger${i}`)
    served++
  }
})
const beside = await row(`beside ${strangers} strangers`)
isOver = true
await Promise.all(loops)
const after = await row("alone again")
const quiet = (before + after) / 2
say(`\n${(beside / quiet).toFixed(1)} x of quiet (noise: ${(after / before).toFixed(2)} x)`)
say(`the strangers' requests meanwhile: ${served}`)
await service.stop()
await nats.stop()
process.exit(0)
