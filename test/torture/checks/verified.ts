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

/** The output of the command, also where it says by its exit code that entries differ. */
const verify = (natsUrl: string) =>
  bellcast(natsUrl, "verify", "--json").catch(
    (error: Error & { code?: number; stdout?: string }) =>
      error.code === 1 ? (error.stdout ?? "") : Promise.reject(error)
  )

export const verified: Check = patient(
  {
    name: "buckets are what the streams say",
    run: async ({ natsUrl }) => {
      const { differences } = JSON.parse(await verify(natsUrl))
      return few(
        differences.map(
          ({ bucket, entry, is, members, since, stream }: Difference) =>
            `${bucket} ${entry} is ${is} since ${stream} ${since}: ${members.join("; ")}`
        )
      )
    }
  },
  patienceMillis
)
