// `bellcast redrive BROADCAST`: sends a finished broadcast again, as a new one, to the
// subscriptions whose pushes ended as dead or expired.
import * as Console from "effect/Console"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { type NotRedriven, redrive, undeliveredOf } from "#broadcasts/state.ts"
import { streams } from "#streams/index.ts"
import { broadcastArgument, demandBroadcast } from "./nats/broadcast.ts"
import { natsFlags, onNats } from "./nats/nats.ts"
import { demandRoom } from "./nats/room.ts"
import { onOff } from "./terminal/input.ts"
import { failed } from "./terminal/output.ts"

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
          `${unreached} pushes of broadcast ${broadcast} would be sent again`
        )
      yield* demandRoom("broadcasts", streams.work)
      const again = yield* redrive(origin, "operator")
      yield* Console.log(
        `${unreached} pushes of broadcast ${broadcast} are sent again as broadcast ${again}, ` +
          "except to those who have left or are suspended"
      )
    }).pipe(
      Effect.catchTag("NotRedriven", (why) => failed(textOf(broadcast, why))),
      onNats(nats)
    )
).pipe(Command.withDescription("Send a broadcast again to those whom it did not reach"))
