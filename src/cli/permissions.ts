// `bellcast permissions list|grant|revoke`: sets who may publish on one channel, or register on one
// that the settings close. Principals that the settings name have these rights without a grant.
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { byHeaders } from "#domain/broadcast.ts"
import {
  foldPublishers,
  isOpen,
  isPublisherCommand,
  nobodyFault,
  noPublishers,
  type Publishers,
  policyOf
} from "#domain/publisher.ts"
import { grantsAt, type Moment } from "#history/past.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { keys } from "#streams/buckets.ts"
import { filters, parsePublisher, subjects } from "#streams/subjects.ts"
import {
  type ChannelToken,
  channelBytesMax,
  channelToken,
  decodeToken,
  isChannelToken
} from "#streams/tokens.ts"
import { printable } from "#telemetry/redaction.ts"
import { printLeftStanding } from "./nats/broadcasts.ts"
import { demandLog, demandRoom, untilApplied } from "./nats/log.ts"
import { natsFlags, onNats } from "./nats/on-nats.ts"
import { atFlag, presentOr } from "./nats/past.ts"
import { policyFault, pseudonymOf, storedPrincipal } from "./nats/users.ts"
import { argument, jsonFlag, onOff, ownSettings } from "./terminal/input.ts"
import { failed, printRows } from "./terminal/output.ts"

/** Each right on a channel: the setting that also gives it, and the types of its commands. */
const rights = {
  publish: {
    setting: "BELLCAST_CHANNEL_WRITE_PRINCIPALS",
    list: "principals",
    type: "publisher",
    stays: "whom the settings name may still publish"
  },
  register: {
    setting: "BELLCAST_CHANNEL_REGISTER_PRINCIPALS",
    list: "registrars",
    type: "registrar",
    stays:
      "whom the settings name may still register, and whoever is registered stays so until " +
      "removed (--remove)"
  }
} as const

type Right = keyof typeof rights

/**
 * Adds or removes a right. Fails if another operator writes at the same time. Returns whether
 * anything changed.
 */
const setRight = Effect.fnUntraced(function* (
  channel: string,
  principal: string,
  right: Right,
  on: boolean
) {
  const token = channelToken(channel)
  if (!isChannelToken(token))
    return yield* failed(`a channel has 1 to ${channelBytesMax} bytes and no slash`)
  const fault = on ? yield* grantFault(channel, principal, right) : undefined
  if (fault !== undefined) return yield* failed(fault)
  const subject = subjects.publisher(token)
  const publishers = (yield* publishersOf(subject, "replay")).get(token) ?? noPublishers
  const key = keys.publishers(token)
  if (publishers[rights[right].list].includes(principal) === on) {
    // An earlier try may have stored the command without seeing that it took effect.
    if (publishers.seq > 0) yield* untilApplied("permissions", key, publishers.seq)
    return false
  }
  const type = `${rights[right].type}.${on ? "put" : "delete"}` as const
  const body = { principal, at: yield* Clock.currentTimeMillis }
  if (on) yield* demandRoom("permissions")
  const { reason } = foldPublishers(publishers, { type, ...body }, publishers.seq + 1)
  if (reason !== undefined) return yield* failed(reason)
  const { seq } = yield* (yield* EventLog).append("log", {
    subject,
    type,
    body,
    expect: publishers.seq
  })
  yield* untilApplied("permissions", key, seq)
  return true
})

/** Why a grant is none. `*` is a pattern in settings and tokens, so it is no name here. */
const grantFault = Effect.fnUntraced(function* (channel: string, principal: string, right: Right) {
  const { setting } = rights[right]
  if (channel.includes("*"))
    return (
      `${channel} is a pattern, and a grant is for one channel; for all that match set ` +
      `${setting}="${channel}=${principal}"`
    )
  const { channelRegisterPrincipals: closed } = yield* ownSettings("channelRegisterPrincipals")
  if (right === "register" && isOpen(closed, channel))
    return (
      `${channel} is open: every user may register there. Close it with ` +
      `${setting}="${channel}=", in the settings of the service and here`
    )
  return nobodyFault(principal) ?? (yield* policyFault)(principal)
})

/**
 * The publishers of each channel that a filter matches, from LOG. `seq` is that of the last
 * message, applied or rejected. `scan` needs the rights of an auditor only, but may read a replica
 * that is behind.
 */
const publishersOf = Effect.fnUntraced(function* (filter: string, by: "scan" | "replay") {
  const log = yield* EventLog
  yield* demandLog
  const channels = new Map<ChannelToken, Publishers>()
  yield* log[by]("log", [filter], ({ message, seq, subject }) => {
    const channel = parsePublisher(subject)
    if (channel === undefined) return
    const before = channels.get(channel) ?? noPublishers
    channels.set(
      channel,
      isPublisherCommand(message)
        ? foldPublishers(before, message, seq).publishers
        : { ...before, seq }
    )
  })
  return channels
})

const listed = Effect.fnUntraced(function* (channel: Option.Option<string>, moment?: Moment) {
  const filter = Option.match(channel, {
    onNone: () => filters.publishers,
    onSome: (name) => subjects.publisher(channelToken(name))
  })
  const found = yield* moment === undefined
    ? publishersOf(filter, "scan")
    : grantsAt(Option.getOrUndefined(Option.map(channel, channelToken)), moment)
  return [...found]
    .flatMap(([token, publishers]) =>
      (["publish", "register"] as const).flatMap((right) =>
        publishers[rights[right].list].map((principal) => ({
          channel: decodeToken(token) ?? token,
          principal,
          right
        }))
      )
    )
    .sort((a, b) =>
      a.channel === b.channel
        ? a.principal < b.principal
          ? -1
          : 1
        : a.channel < b.channel
          ? -1
          : 1
    )
})

/**
 * Removes the registration of a user on a channel. Fails if the user writes at the same time.
 * Returns whether there was one.
 */
const removeRegistration = Effect.fnUntraced(function* (channel: string, id: string) {
  const user = yield* userToRemove(id)
  const place = channelToken(channel)
  const subject = subjects.registration(place, user)
  const log = yield* EventLog
  const last = yield* log.last("log", subject)
  if (last?.message.type !== "registration.put") return false
  const body = { user: id, at: yield* Clock.currentTimeMillis }
  const headers = byHeaders("operator")
  const message = {
    subject,
    type: "registration.delete",
    body,
    expect: last.seq,
    headers
  } as const
  const { seq } = yield* log.append("log", message)
  yield* untilApplied("registrations", keys.registration(place, user), seq)
  return true
})

/** The pseudonym of a user to be removed. Fails for a principal that is no single user. */
const userToRemove = Effect.fnUntraced(function* (principal: string) {
  if (principal.startsWith("group:") || policyOf(principal) === undefined)
    return yield* failed(
      "--remove takes a user, not a group: who is registered has no group stored"
    )
  return yield* pseudonymOf(principal)
})

const channel = argument("channel", "The channel's id")

const principal = argument(
  "principal",
  "<policy>:<id> as GET /v1/ shows it to its user, or <policy>:<mail address>"
)

const register = onOff("register", "The right to register, on a channel that the settings close")

const remove = onOff("remove", "With --register: end the registration of this user, too")

/** The line after a change. The settings of the service may be set elsewhere. */
const changeText = (channel: string, right: Right, on: boolean, changed: boolean) => {
  const done = on
    ? `may ${right} on ${channel}`
    : `is ${changed ? "no longer" : "not"} named for ${channel}`
  if (!changed) return `${done}: nothing to change`
  return on ? done : `${done}; ${rights[right].stays}`
}

const grant = Command.make(
  "grant",
  { channel, principal, register, ...natsFlags },
  ({ channel, principal: named, register, ...nats }) =>
    Effect.gen(function* () {
      const principal = yield* storedPrincipal(named)
      const right = register ? "register" : "publish"
      const changed = yield* setRight(channel, principal, right, true)
      yield* Console.log(printable(`${principal} ${changeText(channel, right, true, changed)}`))
    }).pipe(onNats(nats))
).pipe(Command.withDescription("Let a user publish on a channel, or register on a closed one"))

const revoke = Command.make(
  "revoke",
  { channel, principal, register, remove, ...natsFlags },
  ({ channel, principal: named, register, remove, ...nats }) =>
    Effect.gen(function* () {
      const principal = yield* storedPrincipal(named)
      const right = register ? "register" : "publish"
      if (remove && !register) return yield* failed("--remove goes with --register")
      // Before anything is changed: the principal may be none that can be removed.
      if (remove) yield* userToRemove(principal)
      const changed = yield* setRight(channel, principal, right, false)
      yield* Console.log(printable(`${principal} ${changeText(channel, right, false, changed)}`))
      if (!register) yield* printLeftStanding(principal, channelToken(channel))
      if (!remove) return
      const was = (yield* removeRegistration(channel, principal)) ? "no longer" : "not"
      yield* Console.log(printable(`${principal} is ${was} registered on ${channel}`))
    }).pipe(onNats(nats))
).pipe(Command.withDescription("Undo a grant; whom the settings name keep the right"))

const list = Command.make(
  "list",
  {
    channel: channel.pipe(Argument.optional),
    at: atFlag,
    json: jsonFlag,
    ...natsFlags
  },
  ({ at, channel, json, ...nats }) =>
    Effect.gen(function* () {
      const rows = yield* presentOr(at, listed(channel), (moment) => listed(channel, moment))
      yield* printRows(json, rows, {
        heading: ["CHANNEL", "PRINCIPAL", "MAY"],
        cellsOf: ({ channel, principal, right }) => [channel, principal, right],
        none: "nobody is named for a channel"
      })
    }).pipe(onNats(nats))
).pipe(Command.withDescription("List who is named for a channel, or for all"))

/** The verb. */
export const permissionsCommand = Command.make("permissions").pipe(
  Command.withDescription(
    "Name users who may publish or register on a channel, beside those whom the settings name"
  ),
  Command.withSubcommands([list, grant, revoke])
)
