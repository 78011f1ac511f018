// The buckets are what LOG and WORK say, by `bellcast verify`, while the fleet runs.
import { type Check, few, patient } from "./check.ts"
import { bellcast } from "./cli.ts"

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
const differences = async (natsUrl: string): Promise<ReadonlyArray<string>> => {
  try {
    return differencesIn(await bellcast(natsUrl, "verify", "--json"))
  } catch (error) {
    const { code, stderr = "", stdout = "" } = error as Failure
    if (code === 1) return differencesIn(stdout)
    if (/old messages of LOG were deleted meanwhile/.test(stderr)) return [stderr.trim()]
    throw error
  }
}

interface Failure {
  readonly code?: number
  readonly stdout?: string
  readonly stderr?: string
}

const differencesIn = (printed: string): ReadonlyArray<string> =>
  JSON.parse(printed).differences.map(
    ({ bucket, entry, is, members, since, stream }: Difference) =>
      `${bucket} ${entry} is ${is} since ${stream} ${since}: ${members.join("; ")}`
  )

export const verified: Check = patient(
  {
    name: "buckets are what the streams say",
    run: async ({ natsUrl }) => few(await differences(natsUrl))
  },
  patienceMillis
)
