// `bellcast broadcast show BROADCAST`: its state, who published it, and what became of its pushes.
import * as Argument from "effect/cli/Argument"
import * as Effect from "effect/Effect"
import { standingOf } from "#broadcasts/state.ts"
import { detailedViewOf, type Shown } from "#gateway/broadcasts/view.ts"
import { printable } from "#telemetry/printable.ts"
import { broadcastArgument, demandBroadcast } from "../nats/broadcast.ts"
import { showOne } from "../nats/show-one.ts"
import { table } from "../terminal/table.ts"
import { recipientsOf } from "./list.ts"

const show = Effect.fnUntraced(function* (broadcast: number) {
  const origin = yield* demandBroadcast(broadcast)
  return yield* detailedViewOf(origin, yield* standingOf(origin))
})

const cellOf = (name: string, value: unknown): string => {
  if (typeof value === "object")
    return Object.entries(value ?? {})
      .map((entry) => entry.join("="))
      .join(", ")
  return /_at$|^last_modified$/.test(name) ? new Date(Number(value)).toISOString() : String(value)
}

const fates = ["delivered", "retrying", "expired", "dead", "gone", "cancelled"] as const

type Detailed = (typeof Shown.Type)["data"]

/** Tables of the pushes by reason and by push service; none of what has no pushes. */
const tablesOf = ({ push_services, reasons }: Detailed): ReadonlyArray<string> => {
  const services = Object.entries(push_services).map(([name, of]) => [
    ...[name, ...fates.map((fate) => of[fate])],
    ...[of.p50_millis, of.p99_millis]
  ])
  const heading = ["PUSH SERVICE", ...fates.map((fate) => fate.toUpperCase()), "P50 MS", "P99 MS"]
  return [
    ...(Object.keys(reasons).length > 0
      ? [table(["REASON", "PUSHES"], Object.entries(reasons))]
      : []),
    ...(services.length > 0 ? [table(heading, services)] : [])
  ]
}

const broadcastText = (view: Detailed): string => {
  const { push_services: _, reasons: __, ...rest } = view
  const lines = Object.entries({ ...rest, to: recipientsOf(view) }).map(
    ([name, value]) => `${name.padEnd(22)}${printable(cellOf(name, value))}`
  )
  return [lines.join("\n"), ...tablesOf(view)].join("\n\n")
}

/** The verb. */
export const broadcastShow = showOne({
  named: broadcastArgument.pipe(Argument.withDescription("The broadcast to show")),
  read: show,
  broadcastText,
  description: "Show a broadcast: its state, who published it, and what became of it",
  example: { command: "bellcast broadcast show 5", description: "Show the broadcast with the id 5" }
})
