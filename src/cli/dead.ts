// `bellcast dead [BROADCAST]`: lists dead letters, the pushes that were given up, and why.
import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { DeadLetter } from "#domain/job.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters } from "#streams/subjects.ts"
import { decodeToken } from "#streams/tokens.ts"
import { printableJson } from "#telemetry/printable.ts"
import { broadcastArgument, commandOf } from "./broadcast.ts"
import { natsFlags, onNats } from "./nats/nats.ts"
import { table } from "./terminal/table.ts"

interface Letter {
  readonly broadcast: number
  readonly channel: string
  readonly user: string
  readonly subscription: string
  readonly reason: DeadLetter["reason"]
  readonly status?: number
  readonly attempts: number
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** The dead letters of one broadcast or of all, the oldest first. */
const letters = Effect.fnUntraced(function* (broadcast: Option.Option<number>) {
  const log = yield* EventLog
  if (Option.isSome(broadcast)) yield* commandOf(broadcast.value)
  const found: Array<Letter> = []
  const filter = Option.match(broadcast, {
    onNone: () => filters.deadLetters,
    onSome: filters.deadLettersOf
  })
  yield* log.scan("work", [filter], ({ message }) =>
    Effect.sync(() => {
      if (message.type !== "dead/1") return
      const { at, attempts, broadcast, channel, reason, status, subscription, user } = message
      const name = decodeToken(channel) ?? channel
      found.push({
        broadcast,
        channel: name,
        user,
        subscription,
        reason,
        ...(status === undefined ? {} : { status }),
        attempts,
        at
      })
    })
  )
  return found
})

const text = (list: ReadonlyArray<Letter>) =>
  list.length === 0
    ? "no dead letters"
    : table(
        ["BROADCAST", "CHANNEL", "USER", "SUBSCRIPTION", "STATUS", "REASON", "ATTEMPTS", "AT"],
        list.map(({ at, attempts, broadcast, channel, reason, status, subscription, user }) => [
          ...[broadcast, channel, user, subscription.slice(0, 12)],
          ...[status, reason, attempts, new Date(at).toISOString()]
        ])
      )

const flags = {
  broadcast: broadcastArgument.pipe(
    Argument.withDescription("Only those of this broadcast"),
    Argument.optional
  ),
  json: Flag.Boolean("json").pipe(
    Flag.withDescription("Print JSON lines"),
    Flag.withDefault(false)
  ),
  ...natsFlags
}

/** The verb. */
export const deadCommand = Command.make("dead", flags, ({ broadcast, json, ...nats }) =>
  letters(broadcast).pipe(
    Effect.flatMap((list) =>
      json
        ? Effect.forEach(list, (letter) => Console.log(printableJson(letter)))
        : Console.log(text(list))
    ),
    onNats(nats)
  )
).pipe(Command.withDescription("List the pushes that were given up, and why"))
