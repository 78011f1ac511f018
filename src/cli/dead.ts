// `bellcast dead [BROADCAST]`: lists dead letters, the pushes that were given up, and why.

import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { readOn } from "#broadcasts/list.ts"
import { listDeadLetters } from "#broadcasts/pushes.ts"
import type { DeadLetter } from "#domain/job.ts"
import { decodeToken } from "#streams/tokens.ts"
import { broadcastArgument, commandOf } from "./nats/broadcast.ts"
import { natsFlags, onNats } from "./nats/nats.ts"
import { jsonFlag } from "./terminal/input.ts"
import { printRows } from "./terminal/output.ts"

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

/** The dead letters of one broadcast or of all, the oldest first. */
const letters = Effect.fnUntraced(function* (broadcast: Option.Option<number>) {
  if (Option.isSome(broadcast)) yield* commandOf(broadcast.value)
  const found = yield* readOn(Number.POSITIVE_INFINITY, (from: number | undefined) =>
    listDeadLetters(Option.getOrUndefined(broadcast), from ?? 1)
  )
  return found.map(shownOf)
})

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
