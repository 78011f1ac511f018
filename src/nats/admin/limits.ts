// Limits of a nats-server or an account that the service cannot work within. A start names the
// limit and what it must be. Others are kept within: nats/stream/pull.ts, and consumers in
// provision.ts.
import { JetStreamApiError } from "@nats-io/jetstream"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { Role } from "#config"
import { streamNames, streams } from "#streams/index.ts"
import { Nats } from "../connection/connection.ts"
import { attempt, StartRefused, unavailable } from "../connection/errors.ts"

/** Readings of a stream at a time, of broadcasts that are resumed or cancelled for example. */
const readingsMax = 4

/**
 * Consumers that a stream must be allowed: the durable ones, that of a follower, and those that
 * read it. Each further process that plans, delivers or serves the API has one more of LOG.
 */
export const consumersMin: number =
  Math.max(...Object.values(streams).map(({ consumers }) => Object.keys(consumers).length)) +
  1 +
  readingsMax

/** A process with all roles has 35 at rest; each reading and each further pull has one more. */
const subscriptionsMin = 64
/**
 * Subscriptions that a role makes after the probe and keeps. The probe makes as many, so that it
 * pushes no other client of the account over a limit, and refuses no start that would work.
 */
const keptByRole: Readonly<Record<Role, number>> = {
  gateway: 19,
  projection: 1,
  fanout: 1,
  tally: 1,
  delivery: 7
}
/** Roles that follow the states of broadcasts, by one subscription together. */
const followingStates: ReadonlyArray<Role> = ["gateway", "fanout", "delivery"]
export const probesOf = (roles: ReadonlyArray<Role>): number =>
  roles.reduce((sum, role) => sum + keptByRole[role], 0) +
  (followingStates.some((role) => roles.includes(role)) ? 1 : 0)
/** The longest subject, that of the registration of a user in a channel of 255 bytes. */
const subjectBytes = 900

const hours = streams.log.duplicateWindowMillis / 3_600_000

/** What an operator must change, by the code of the server's refusal and a word of its text. */
const cures: ReadonlyArray<readonly [code: number, text: RegExp, cure: string]> = [
  [10026, /./, `allow the account ${consumersMin} consumers or more (max_consumers)`],
  [10027, /./, `allow the account ${streamNames.length + 1} streams or more (max_streams)`],
  [
    10052,
    /duplicates window/i,
    `set duplicate_window of jetstream.limits to ${hours} h or more: for so long NATS knows an ` +
      "Idempotency-Key again"
  ],
  [10023, /./, "raise max_ha_assets of jetstream.limits, or start servers that are away"],
  [10120, /./, "give the account limits for JetStream, for as many copies as BELLCAST_REPLICAS"]
]

/** The limit that a refusal of NATS comes from, and its cure; undefined: it is something else. */
export const limitFault = (error: unknown): StartRefused | undefined => {
  if (!(error instanceof JetStreamApiError)) return undefined
  const found = cures.find(([code, text]) => code === error.code && text.test(error.message))
  return (
    found && new StartRefused({ message: `NATS: ${error.message}. Its operator must ${found[2]}` })
  )
}

/** Fails with StartRefused where the account allows fewer consumers than work needs. */
export const refuseTightLimits = Effect.gen(function* () {
  const { jsm } = yield* Nats
  const { limits, tiers } = yield* attempt("limits of the account", () => jsm.getAccountInfo())
  const all = [limits, ...Object.values(tiers ?? {}).flatMap((tier) => tier?.limits ?? [])]
  for (const { max_consumers } of all)
    if (max_consumers > 0 && max_consumers < consumersMin)
      return yield* new StartRefused({
        message:
          `NATS allows the account ${max_consumers} consumers of a stream. Its operator must ` +
          `allow ${consumersMin} or more (max_consumers), and one more for each further process`
      })
})

/** Messages of one publish that arrive at so many subscriptions on the longest subject. */
const probed = async ({ listen, nc, inbox }: Nats["Service"], probes: number): Promise<number> => {
  const subject = `${inbox()}.probe.${"x".repeat(subjectBytes)}`
  let arrived = 0
  const receive = () => void arrived++
  const subscriptions = Array.from({ length: probes }, () => listen({ subject, receive }))
  nc.publish(subject)
  // Whatever the server accepted arrives before its response. It closes the connection if a line is
  // too long.
  await nc.flush().catch(() => {})
  for (const subscription of subscriptions) subscription.unsubscribe()
  return arrived
}

/**
 * Fails with StartRefused where NATS refuses the subscriptions or the subjects of a process. It
 * says so to none of those who wait for what they subscribed to.
 */
export const refuseTightConnection = Effect.fnUntraced(function* (roles: ReadonlyArray<Role>) {
  const nats = yield* Nats
  const probes = probesOf(roles)
  const began = performance.now()
  const lost = unavailable("probe of NATS")
  const arrived = yield* attempt("probe of NATS", () => probed(nats, probes))
  if (arrived === probes) return
  // The report of the refusal may be on its way to its reader.
  const { reason } = yield* Effect.suspend(() => {
    const found = nats.refusal()
    const isNew = found !== undefined && found.millis <= performance.now() - began
    return isNew ? Effect.succeed(found) : Effect.fail(lost(new Error("the connection was lost")))
  }).pipe(Effect.retry({ schedule: Schedule.spaced("20 millis"), times: 50 }))
  return yield* new StartRefused({
    message:
      `NATS refuses what a process needs: ${reason}. Its operator must allow each ` +
      `process ${subscriptionsMin} subscriptions (max_subscriptions of nats-server; max_subs of ` +
      "the account, for all processes together), lines of 2048 bytes (max_control_line) and " +
      "subjects of 4 tokens (max_sub_tokens)"
  })
})
