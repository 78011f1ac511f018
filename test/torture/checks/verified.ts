// The buckets are what LOG and WORK say, by `bellcast verify`, while the fleet runs.
import { historyMillisMin } from "../fleet/days.ts"
import { type Check, few, type Look, patient } from "./check.ts"
import { bellcast } from "./cli.ts"
import { missingIn } from "./history.ts"

interface Difference {
  readonly bucket: string
  readonly entry: string
  readonly is: string
  readonly stream: string
  readonly since?: number
  readonly members: ReadonlyArray<string>
}

/**
 * Entries of finished broadcasts that a killed nats-server brought back, the service removes
 * within a minute.
 */
const patienceMillis = 90_000

/**
 * The differences, also where the command says by its exit code that there are some. Where the
 * trimmer deleted messages that the command was reading, the command says so, and is run again.
 */
const differences = async (look: Look): Promise<ReadonlyArray<string>> => {
  try {
    return await differencesIn(look, await bellcast(look.natsUrl, "verify", "--json"))
  } catch (error) {
    const { code, stderr = "", stdout = "" } = error as Failure
    if (code === 1) return differencesIn(look, stdout)
    if (/old messages of LOG were deleted meanwhile/.test(stderr)) return [stderr.trim()]
    throw error
  }
}

interface Failure {
  readonly code?: number
  readonly stdout?: string
  readonly stderr?: string
}

const differencesIn = async (look: Look, printed: string): Promise<ReadonlyArray<string>> => {
  const { noted } = look.recorded
  const before = Date.now() - historyMillisMin
  const trimmed = (await missingIn(look)).filter((seq) => noted.get(seq)!.at < before)
  const missing = new Set(trimmed)
  return (JSON.parse(printed).differences as ReadonlyArray<Difference>)
    .filter((each) => !isOverAge(each, missing))
    .map(
      ({ bucket, entry, is, members, since, stream }) =>
        `${bucket} ${entry} is ${is} since ${stream} ${since}: ${members.join("; ")}`
    )
}

/**
 * Entries of broadcasts have an age of 35 whole days. A killed nats-server brings none back of a
 * broadcast that LOG lacks, as that ended at least 95 days ago; but with the rig's short days it
 * does, and the service finds no channel by which to remove the entry.
 */
const isOverAge = ({ bucket, entry, is }: Difference, missing: ReadonlySet<number>): boolean =>
  bucket === "broadcasts" && is === "added" && missing.has(Number(entry.split(" ").at(-1)))

export const verified: Check = patient(
  {
    name: "buckets are what the streams say",
    run: async (look) => few(await differences(look))
  },
  patienceMillis
)
