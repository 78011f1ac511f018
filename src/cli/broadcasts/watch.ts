// `bellcast broadcast watch BROADCAST`: what becomes of it, until its end.
import * as Console from "effect/Console"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { standingOf } from "#broadcasts/state.ts"
import { BroadcastWatch, followBroadcast } from "#broadcasts/watch.ts"
import { type BroadcastObject, detailedViewOf } from "#gateway/broadcasts/view.ts"
import { printable, printableJson } from "#telemetry/printable.ts"
import { broadcastArgument, demandBroadcast } from "../nats/broadcast.ts"
import { natsFlags, onNats } from "../nats/nats.ts"
import { failed } from "../terminal/failed.ts"
import { jsonFlag } from "../terminal/flags.ts"
import { startOf } from "./list.ts"

const counts = ["delivered", "waiting", "retrying", "expired", "dead", "gone", "cancelled"] as const

/** The counts that are 0 are left out. */
const lineOf = (view: typeof BroadcastObject.Type): string => {
  const { accepted, last_modified, people, state } = view
  const parts = [
    ...(state === "scheduled" ? [`starts ${startOf(view)}`] : []),
    ...(people === undefined ? [] : [`${people} people`]),
    `${accepted} accepted`,
    ...counts.filter((name) => view[name] > 0).map((name) => `${view[name]} ${name}`)
  ]
  return `${new Date(last_modified).toISOString()}  ${state.padEnd(9)}  ${parts.join(", ")}`
}

const watch = Effect.fnUntraced(function* (broadcast: number, json: boolean) {
  const origin = yield* demandBroadcast(broadcast)
  const { rejected, state } = yield* followBroadcast(
    origin,
    yield* standingOf(origin),
    (standing) =>
      Effect.flatMap(detailedViewOf(origin, standing), (view) =>
        Console.log(json ? printableJson(view) : lineOf(view))
      )
  )
  if (state === "cancelled") return yield* failed(`broadcast ${broadcast} was cancelled`)
  if (rejected !== undefined)
    return yield* failed(`broadcast ${broadcast} was rejected: ${printable(rejected)}`)
})

/** The verb. */
export const watchCommand = Command.make(
  "watch",
  {
    broadcast: broadcastArgument.pipe(Argument.withDescription("The broadcast to watch")),
    json: jsonFlag,
    ...natsFlags
  },
  ({ broadcast, json, ...nats }) =>
    onNats(nats)(Effect.provide(watch(broadcast, json), BroadcastWatch.layer))
).pipe(
  Command.withDescription("Print what becomes of a broadcast, until it is finished"),
  Command.withExamples([
    { command: "bellcast broadcast watch 5", description: "Watch the broadcast with the id 5" }
  ])
)
