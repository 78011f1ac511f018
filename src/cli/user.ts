// `bellcast user show USER`: the devices, the channels and the last pushes of a user.
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { personOf } from "#gateway/users/user.ts"
import { printable } from "#telemetry/redaction.ts"
import { showOne } from "./nats/on-nats.ts"
import { userGiven, userGivenHelp } from "./nats/users.ts"
import { argument } from "./terminal/input.ts"
import { tableOr } from "./terminal/output.ts"

type Person = Effect.Success<ReturnType<typeof personOf>>

const iso = (millis: number | undefined) =>
  millis === undefined ? undefined : new Date(millis).toISOString()

const shownDevices = {
  heading: ["DEVICE", "HOST", "LABEL", "CREATED", "LAST DELIVERED", "SUSPENDED"],
  cellsOf: (device: Person["devices"][number]) => [
    ...[device.id.slice(0, 12), device.host, device.label, iso(device.created)],
    ...[iso(device.last_delivered), device.suspended?.reason]
  ],
  none: "no devices"
}

const shownPushes = {
  heading: ["BROADCAST", "CHANNEL", "DEVICE", "OUTCOME", "STATUS", "REASON", "AT"],
  cellsOf: (push: Person["pushes"][number]) => [
    ...[Number(push.broadcast), push.channel, push.subscription.slice(0, 12), push.outcome],
    ...[push.status, push.reason, iso(push.at)]
  ],
  none: "no pushes of late; bellcast audit --user looks further back"
}

const textOf = ({ channels, devices, id, pushes, registrations }: Person): string => {
  const names = channels.map((channel) => printable(channel.id)).join(", ")
  const more = registrations > channels.length ? ", ..." : ""
  return [
    `user      ${printable(id)}`,
    `channels  ${registrations}${names === "" ? "" : `: ${names}${more}`}`,
    "",
    tableOr(devices, shownDevices),
    "",
    tableOr(pushes, shownPushes)
  ].join("\n")
}

const userShow = showOne({
  named: argument("user", userGivenHelp),
  // No list waits for its turn in the process of a command, so none is refused.
  read: (user) =>
    userGiven(user).pipe(Effect.flatMap(personOf), Effect.catchTag("Refused", Effect.die)),
  textOf,
  description: "Show a user: devices, channels and last pushes, never an endpoint",
  example: { command: "bellcast user show openid:anna", description: "Show the user openid:anna" }
})

/** The verb. */
export const userCommand = Command.make("user").pipe(
  Command.withDescription("Show users"),
  Command.withSubcommands([userShow])
)
