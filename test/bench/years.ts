// `make bench ARGS=years`: LOG of a site in five simulated years, as it is stored, and trimmed to
// 400 and to 95 days by the product's own code. A real service stores one message of each kind
// first, which says the bytes. In the end a small LOG is stored and trimmed for real, and compared.
// BENCH_USERS (default 5000) are simulated: each stands for as many of 100,000. BENCH_GONE (default
// 0.5) is the share of those who go in a day whose browser is gone without a word. BENCH_MONTHS is
// 60. With 5,000 users it takes about three minutes of CPU time and 0.6 GiB.
import { historyDaysMin } from "#domain/history.ts"
import { historyDaysDefault } from "#history/place.ts"
import { say } from "./print.ts"
import { compareWithReal } from "./years-check.ts"
import { type Held, History } from "./years-history.ts"
import { dayMillis, Site } from "./years-site.ts"
import { readStoredSizes, type Samples } from "./years-sizes.ts"

const usersMeant = 100_000
const users = Number(process.env["BENCH_USERS"] ?? 5_000)
const goneShare = Number(process.env["BENCH_GONE"] ?? 0.5)
const months = Number(process.env["BENCH_MONTHS"] ?? 60)
const monthDays = 365.25 / 12
const printedMonths = 3
const mebibyte = 1024 ** 2

const lives = (gone: number) => `
A site with ${usersMeant} users, who come on the first day, one browser and one channel each. Then:
- 1000 new users a day subscribe and register, and as many go, whoever they are: so the number
  stays. (With 1000 new and 500 leaving a day, 913,000 more would be there after five years.)
- ${1_000 - gone} of those who go end their subscription and their registration. The browsers of
  the other ${gone} are gone: a push service says so at the next broadcast, and nobody ends the
  registration.
- Every 30 days each browser gets a new endpoint, which the service stores in place of the former.
- Two broadcasts a day to the channel, one of them scheduled; once a month one to two channels, in
  20 languages. One rejected command a day; a grant and a token a month.
${users} users are simulated: each message of a user counts ${usersMeant / users} times.
`

const row = (name: string, cells: ReadonlyArray<string | number>) =>
  say(name.padEnd(46) + cells.map((cell) => String(cell).padStart(11)).join(""))
const cellsOf = ({ bytes, messages }: Held) => [
  Math.round(messages),
  (bytes / mebibyte).toFixed(bytes < 10 * mebibyte ? 1 : 0)
]

const saySizes = (samples: Samples) => {
  say("Bytes of a message in LOG, as nats-server stores it:")
  for (const [kind, { bytes }] of samples)
    if (kind !== "key.adopted" && kind !== "userid-secret.adopted") row(kind, [Math.round(bytes)])
}

const simulate = async (samples: Samples) => {
  const days = Math.round(months * monthDays)
  const begin = Date.UTC(2030, 0, 1)
  const site = new Site({ users, days, goneShare, begin }, samples)
  const scale = usersMeant / users
  const histories = [undefined, historyDaysDefault, historyDaysMin].map(
    (each) => new History(site, samples, { scale, ...(each === undefined ? {} : { days: each }) })
  )
  const heads = ["whole", `${historyDaysDefault} days`, `${historyDaysMin} days`]
  row("", ["", ...heads.flatMap((head) => [head, ""])])
  row("month", ["users", ...heads.flatMap(() => ["messages", "MiB"])])
  /** Bytes of each a year before the end. */
  let before = histories.map(() => 0)
  for (let month = 1; month <= months; month++) {
    while (site.day < Math.round(month * monthDays)) {
      site.nextDay()
      for (const each of histories) await each.look(begin + site.day * dayMillis)
    }
    if (month === months - 12) before = histories.map(({ held }) => held.bytes)
    if (month % printedMonths === 0)
      row(String(month), [site.users * scale, ...histories.flatMap(({ held }) => cellsOf(held))])
  }
  const each = (bytes: (held: Held, i: number) => number) =>
    histories.flatMap(({ held }, i) => ["", Math.round(bytes(held, i) / usersMeant)])
  row("bytes of LOG for each live user at the end", ["", ...each(({ bytes }) => bytes)])
  const years = Math.min(1, months / 12)
  row("bytes for each live user and year, the last one", [
    "",
    ...each(({ bytes }, i) => (bytes - before[i]!) / years)
  ])
  return histories
}

const sayLeft = (histories: ReadonlyArray<History>) => {
  say("\nWhat LOG has at the end:")
  const left = histories.map((each) => each.left())
  for (const name of [...left[0]!.keys()].sort())
    row(name, ["", ...left.flatMap((each) => cellsOf(each.get(name) ?? { messages: 0, bytes: 0 }))])
}

const samples = await readStoredSizes()
saySizes(samples)
say(lives(1_000 * goneShare))
sayLeft(await simulate(samples))
const compared = await compareWithReal(samples)
const { days, historyDays, trimmed, whole } = compared
say(`\nThe same for ${compared.users} users and ${days} days, simulated, and for real:`)
row("", ["messages", "MiB", "for real", "MiB", "bytes off"])
for (const [name, { real, simulated }] of [
  ["whole", whole],
  [`${historyDays} days`, trimmed]
] as const) {
  const off = (simulated.bytes / real.bytes - 1) * 100
  row(name, [...cellsOf(simulated), ...cellsOf(real), `${off.toFixed(1)} %`])
}
process.exit(0)
