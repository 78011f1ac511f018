// `bellcast redrive BROADCAST`: sends a finished broadcast again, as a new one, to the
// subscriptions whose pushes ended as dead or expired.
import * as Console from "effect/Console"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { givenHeaders, redrivesHeader } from "#domain/broadcast.ts"
import { isUndelivered } from "#domain/outcome.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { streams } from "#streams/index.ts"
import { parseBroadcast, subjects } from "#streams/subjects.ts"
import { audit } from "./audit.ts"
import { broadcastArgument, commandOf } from "./broadcast.ts"
import { natsFlags, onNats } from "./nats/nats.ts"
import { demandRoom } from "./nats/room.ts"
import { failed } from "./terminal/failed.ts"
import { onOff } from "./terminal/flags.ts"

/**
 * Number of pushes to send again. Fails unless the broadcast is finished and its outcomes are
 * stored.
 */
const unreachedOf = Effect.fnUntraced(function* (broadcast: number) {
  const { progress, pushes, rejected } = yield* audit(broadcast)
  if (rejected !== undefined)
    return yield* failed(`broadcast ${broadcast} was rejected: there is nothing to send again`)
  if (progress?.finished !== true)
    return yield* failed(
      `broadcast ${broadcast} is not finished: some of its pushes may still arrive`
    )
  const unreached = pushes.filter(({ fate }) => isUndelivered(fate)).length
  if (unreached < progress.dead + progress.expired)
    return yield* failed(`the outcomes of broadcast ${broadcast} are no longer stored`)
  return unreached
})

/**
 * Appends the new broadcast and returns its id. Fails if there is one already: a second would reach
 * some users twice.
 */
const append = Effect.fnUntraced(function* (broadcast: number) {
  const log = yield* EventLog
  const { header, message, subject: source } = yield* commandOf(broadcast)
  const channel = parseBroadcast(source)?.channel
  if (channel === undefined || (message.type !== "broadcast/1" && message.type !== "direct/1"))
    return yield* failed(`broadcast ${broadcast} cannot be read`)
  const subject = subjects.broadcast("redrive", channel)
  let [expect, former] = [0, 0]
  yield* log.replay("log", [subject], ({ header, seq }) => {
    expect = seq
    if (header(redrivesHeader) === String(broadcast)) former = seq
  })
  if (former > 0)
    return yield* failed(
      `broadcast ${broadcast} was sent again as ${former}: redrive that one for those who are ` +
        "left"
    )
  // The time to live starts again.
  const headers = { ...givenHeaders(header), [redrivesHeader]: String(broadcast) }
  const { type, ...body } = message
  return (yield* log.append("log", { subject, type, body, headers, expect })).seq
})

const flags = {
  broadcast: broadcastArgument.pipe(Argument.withDescription("The broadcast to send again")),
  dryRun: onOff("dry-run", "Only count"),
  ...natsFlags
}

/** The verb. */
export const redriveCommand = Command.make("redrive", flags, ({ broadcast, dryRun, ...nats }) =>
  Effect.gen(function* () {
    const unreached = yield* unreachedOf(broadcast)
    if (unreached === 0)
      return yield* Console.log(`broadcast ${broadcast} left nobody to send to again`)
    if (dryRun)
      return yield* Console.log(`${unreached} pushes of broadcast ${broadcast} would be sent again`)
    yield* demandRoom("broadcasts", streams.work)
    const again = yield* append(broadcast)
    yield* Console.log(
      `${unreached} pushes of broadcast ${broadcast} are sent again as broadcast ${again}, ` +
        "except to those who have left or are suspended"
    )
  }).pipe(onNats(nats))
).pipe(Command.withDescription("Send a broadcast again to those whom it did not reach"))
