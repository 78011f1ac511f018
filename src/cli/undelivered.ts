// `bellcast dead [BROADCAST]` lists the pushes that were given up, and why; `bellcast redrive
// BROADCAST` sends a finished broadcast again, as a new one, to the subscriptions whose pushes
// ended as dead or expired.

import * as Console from "effect/Console"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { readOn } from "#broadcasts/list.ts"
import { listDeadLetters } from "#broadcasts/pushes.ts"
import { type NotRedriven, redrive, undeliveredOf } from "#broadcasts/state.ts"
import type { DeadLetter } from "#domain/job.ts"
import { streams } from "#streams/index.ts"
import { decodeToken } from "#streams/tokens.ts"
import { broadcastArgument, commandOf, demandBroadcast } from "./nats/broadcasts.ts"
import { demandRoom } from "./nats/log.ts"
import { natsFlags, onNats } from "./nats/on-nats.ts"
import { jsonFlag, onOff } from "./terminal/input.ts"
import { counted, failed, printRows } from "./terminal/output.ts"

/** The dead letters of one broadcast or of all, the oldest first. */
const letters = Effect.fnUntraced(function* (broadcast: Option.Option<number>) {
  if (Option.isSome(broadcast)) yield* commandOf(broadcast.value)
  const found = yield* readOn(Number.POSITIVE_INFINITY, (from: number | undefined) =>
    listDeadLetters(Option.getOrUndefined(broadcast), from ?? 1)
  )
  return found.map(shownOf)
})

/** A dead letter as it is shown, with the name of its channel. */
type Letter = Omit<
  DeadLetter,
  "generation" | "acceptedAt" | "expiresAt" | "urgency" | "topic" | "status" | "service"
> & { readonly status: number | undefined }

const shownOf = (letter: DeadLetter): Letter => {
  const { at, attempts, broadcast, channel, reason, status, subscription, user } = letter
  const name = decodeToken(channel) ?? channel
  return { broadcast, channel: name, user, subscription, reason, status, attempts, at }
}

const shown = {
  heading: ["BROADCAST", "CHANNEL", "USER", "SUBSCRIPTION", "STATUS", "REASON", "ATTEMPTS", "AT"],
  cellsOf: ({ at, attempts, broadcast, channel, reason, status, subscription, user }: Letter) => [
    ...[broadcast, channel, user, subscription.slice(0, 12)],
    ...[status, reason, attempts, new Date(at).toISOString()]
  ],
  none: "no dead letters"
}

const deadFlags = {
  broadcast: broadcastArgument.pipe(
    Argument.withDescription("Only those of this broadcast"),
    Argument.optional
  ),
  json: jsonFlag,
  ...natsFlags
}

/** The verb. */
export const deadCommand = Command.make("dead", deadFlags, ({ broadcast, json, ...nats }) =>
  letters(broadcast).pipe(
    Effect.flatMap((list) => printRows(json, list, shown)),
    onNats(nats)
  )
).pipe(Command.withDescription("List the pushes that were given up, and why"))

/** For people: the reason why a broadcast is not sent again. */
const textOf = (broadcast: number, { former, reason }: NotRedriven): string =>
  ({
    rejected: `broadcast ${broadcast} was rejected: there is nothing to send again`,
    unfinished: `broadcast ${broadcast} is not finished: some of its pushes may still arrive`,
    forgotten: `the outcomes of broadcast ${broadcast} are no longer stored`,
    redriven:
      `broadcast ${broadcast} was sent again as ${former}: redrive that one for those who are ` +
      "left"
  })[reason]

const redriveFlags = {
  broadcast: broadcastArgument.pipe(Argument.withDescription("The broadcast to send again")),
  dryRun: onOff("dry-run", "Only count"),
  ...natsFlags
}

/** The verb. */
export const redriveCommand = Command.make(
  "redrive",
  redriveFlags,
  ({ broadcast, dryRun, ...nats }) =>
    Effect.gen(function* () {
      const origin = yield* demandBroadcast(broadcast)
      const unreached = yield* undeliveredOf(origin)
      if (unreached === 0)
        return yield* Console.log(`broadcast ${broadcast} left nobody to send to again`)
      if (dryRun)
        return yield* Console.log(
          `${counted(unreached, "push", "pushes")} of broadcast ${broadcast} would be sent again`
        )
      yield* demandRoom("broadcasts", streams.work)
      const again = yield* redrive(origin, "operator")
      yield* Console.log(
        `${counted(unreached, "push", "pushes")} of broadcast ${broadcast} ` +
          `${unreached === 1 ? "is" : "are"} sent again as broadcast ${again}, ` +
          "except to those who have left or are suspended"
      )
    }).pipe(
      Effect.catchTag("NotRedriven", (why) => failed(textOf(broadcast, why))),
      onNats(nats)
    )
).pipe(Command.withDescription("Send a broadcast again to those whom it did not reach"))
