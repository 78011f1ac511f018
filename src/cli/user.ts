// `bellcast user show|erase|erased`: what the service knows of a user, the erasure of one, and who
// was erased.
import * as Console from "effect/Console"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { ErasedLine } from "#domain/erasure.ts"
import { deviceOf, personOf } from "#gateway/users/user.ts"
import { channelsOfUserAt, erasedAfter, listsOf, type Moment } from "#history/past.ts"
import type { User } from "#identity/identity.ts"
import { streamState } from "#nats/admin/maintenance.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { readErased } from "#projection/erased-list.ts"
import { streams } from "#streams/index.ts"
import { filters, parseErasure, subjects } from "#streams/subjects.ts"
import { decodeToken, type UserToken } from "#streams/tokens.ts"
import { printable, printableJson } from "#telemetry/redaction.ts"
import { eraseAll } from "./nats/erase.ts"
import { type Erased, erasedText, erasureSince, outcomesUntil } from "./nats/erased.ts"
import { demandLog } from "./nats/log.ts"
import { natsFlags, onNats, showOneAt } from "./nats/on-nats.ts"
import { grantsNaming, type Rest, restOf, shownRest } from "./nats/user-rest.ts"
import { userGiven, userGivenHelp } from "./nats/users.ts"
import { argument, jsonFlag, named } from "./terminal/input.ts"
import {
  counted,
  failed,
  failedBy,
  isoOf,
  note,
  printRows,
  shellWord,
  tableOr
} from "./terminal/output.ts"

/** The rights by grants that name a user; undefined: see `grantsNaming`. */
const rightsOf = (user: User, { seq }: Pick<Moment, "seq">) =>
  Effect.map(grantsNaming([user], seq), (grants) =>
    grants?.map(({ channel, right }) => ({ channel, right }))
  )
type Grants = Effect.Success<ReturnType<typeof rightsOf>>

const mayText = (grants: Grants): string => {
  if (grants === undefined)
    return "is not known of a pseudonym without the service's user id secret here"
  const all = grants.map(({ channel, right }) => `${right} on ${printable(channel)}`).join(", ")
  return `${all === "" ? "no grant names the user" : all}; groups and settings may say more`
}

/** A user as the service has it, with what grants of LOG say. */
const personNow = Effect.fnUntraced(function* (given: string) {
  const user = yield* userGiven(given)
  // No list waits for its turn in the process of a command, so none is refused.
  const { isMore, person } = yield* Effect.catchTag(personOf(user), "Refused", Effect.die)
  const seq = (yield* streamState(streams.log))?.lastSeq ?? 0
  const grants = yield* rightsOf(user, { seq })
  return {
    ...{ ...person, pseudonym: user.user, ...(yield* erasureSince(user.user, 0)) },
    ...(isMore && { more_pushes: true }),
    ...(grants !== undefined && { grants })
  }
})

type Person = Effect.Success<ReturnType<typeof personNow>>

type Device = Person["devices"][number]

const shownDevices = {
  heading: ["DEVICE", "HOST", "LABEL", "CREATED", "LAST DELIVERED", "SUSPENDED"],
  cellsOf: (device: Device) => [
    ...[device.id.slice(0, 12), device.host, device.label, isoOf(device.created)],
    ...[isoOf(device.last_delivered), device.suspended?.reason]
  ],
  none: "no devices"
}

const shownPushes = {
  heading: ["BROADCAST", "CHANNEL", "DEVICE", "OUTCOME", "STATUS", "REASON", "AT"],
  cellsOf: (push: Person["pushes"][number]) => [
    ...[Number(push.broadcast), push.channel, push.subscription.slice(0, 12), push.outcome],
    ...[push.status, push.reason, isoOf(push.at)]
  ],
  none: "no pushes of late"
}

interface Head extends Partial<Erased> {
  readonly id: string
  readonly pseudonym: UserToken
}

/** The names of a user, and the erasure if there was one. */
const headOf = (head: Head): ReadonlyArray<string> => {
  const { erased, id, pseudonym } = head
  return [
    `user       ${printable(id)}`,
    `pseudonym  ${pseudonym}`,
    ...(erased === undefined ? [] : [`erased     ${erasedText({ ...head, erased }, pseudonym)}`])
  ]
}

const textOf = (person: Person): string => {
  const { channels, devices, grants, more_pushes, pushes, registrations } = person
  const names = channels.map((channel) => printable(channel.id)).join(", ")
  const more = registrations > channels.length ? ", ..." : ""
  return [
    ...headOf(person),
    `channels   ${registrations}${names === "" ? "" : `: ${names}${more}`}`,
    `may        ${mayText(grants)}`,
    "",
    tableOr(devices, shownDevices),
    "",
    tableOr(pushes, shownPushes),
    ...(more_pushes || pushes.length === 0 ? [furtherBack(person)] : [])
  ].join("\n")
}

const furtherBack = ({ id, pushes }: Person): string => {
  const shown = new Set(pushes.map(({ broadcast }) => broadcast)).size
  const of = shown === 0 ? "" : `pushes of ${counted(shown, "broadcast")} or more; `
  return `${of}bellcast audit --user ${shellWord(id)} looks further back`
}

/** The devices, channels and grants of a user as LOG had them. */
const personAt = Effect.fnUntraced(function* ({ id, user }: User, moment: Moment) {
  const { subscriptions } = (yield* listsOf(user))(moment.seq)
  const devices = yield* Effect.forEach(Object.entries(subscriptions), ([subscription, each]) =>
    deviceOf(subscription, each)
  )
  const channels = (yield* channelsOfUserAt(user, moment)).map(({ channel, since }) => ({
    id: decodeToken(channel) ?? channel,
    since
  }))
  const grants = yield* rightsOf({ id, user }, moment)
  const isErased = (yield* erasedAfter(user, moment)) !== undefined
  return {
    ...{ id, pseudonym: user, at: moment.at, ...(isErased && (yield* erasureSince(user, 0))) },
    // Of an erased user nobody knows which there were.
    ...(!isErased && { devices, registrations: channels.length, channels }),
    ...(grants !== undefined && { grants })
  }
})

const shownChannels = {
  heading: ["CHANNEL", "REGISTERED SINCE"],
  cellsOf: ({ id, since }: { readonly id: string; readonly since: number }) => [id, isoOf(since)],
  none: "no channels"
}

/** LOG does not say when one was reached. */
const shownPastDevices = {
  heading: ["DEVICE", "HOST", "LABEL", "CREATED", "SUSPENDED"],
  cellsOf: ({ created, host, id, label, suspended }: Omit<Device, "last_delivered">) => [
    ...[id.slice(0, 12), host, label, isoOf(created), suspended?.reason]
  ],
  none: "no devices"
}

const pastText = (person: Effect.Success<ReturnType<typeof personAt>>): string => {
  const { at, channels, devices, grants } = person
  return [
    ...headOf(person),
    `at         ${isoOf(at)}`,
    `may        ${mayText(grants)}`,
    ...(channels === undefined ? [] : ["", tableOr(channels, shownChannels)]),
    ...(devices === undefined ? [] : ["", tableOr(devices, shownPastDevices)])
  ].join("\n")
}

const printPast = Effect.fnUntraced(function* (given: string, moment: Moment, json: boolean) {
  const person = yield* personAt(yield* userGiven(given), moment)
  yield* Console.log(json ? printableJson(person) : pastText(person))
})

const userShow = showOneAt({
  named: argument("user", userGivenHelp),
  read: personNow,
  textOf,
  printPast,
  description: "Show a user: devices, channels, grants and last pushes, never an endpoint",
  example: { command: "bellcast user show openid:anna", description: "Show the user openid:anna" },
  exampleOfPast: {
    command: "bellcast user show openid:anna --at 2026-05-04T12:00Z",
    description: "Devices, channels and rights of openid:anna at that time"
  }
})

/** The answer after an erasure. */
const erasureText = Effect.fnUntraced(function* (given: User, { at, seq }: Stored) {
  const { id, user } = given
  const until = isoOf(outcomesUntil(at))!
  const rows: ReadonlyArray<Rest> = [
    { what: "outcomes of pushes, and looks, under the pseudonym", end: `expiring until ${until}` },
    ...(yield* restOf([given], seq)),
    {
      what: "what the user published, or others got, too; who had a right",
      // The verb needs the id.
      end: `bellcast export FILE --user ${id === user ? "ID" : shellWord(id)} --all shows it`
    }
  ]
  return [
    `erased     ${printable(id)}`,
    `pseudonym  ${user}`,
    `at         ${isoOf(at)}`,
    "",
    tableOr(rows, shownRest)
  ].join("\n")
})

/** Warns where LOG has never heard of an id, which may be mistyped. */
const noteUnknown = Effect.fnUntraced(function* ({ id, user }: User) {
  if (id === user) return
  const { following } = yield* EventLog
  for (const filter of [subjects.subscription(user), filters.registrationsOf(user)])
    if ((yield* following("log", filter, { from: 1, limit: 1 })).length > 0) return
  if ((yield* erasureSince(user, 0)) !== undefined) return
  yield* note(`LOG has no subscription and no registration of ${id}: check the name`)
})

/** Erases again whom LOG, which a backup has, does not know as erased. */
const repeat = Effect.fnUntraced(function* (file: string) {
  yield* demandLog
  const { asked, lost, users } = yield* Effect.catchTag(readErased(file), "ListFault", (fault) =>
    Effect.fail(failedBy(fault))
  )
  const rest = printRest(lost.map((user) => ({ id: user, user })))
  // The next run knows only those that are left.
  yield* Effect.onError(eraseAll(lost, asked), () => Effect.ignore(rest))
  yield* Console.log(`${lost.length} of ${users.length} erasures were repeated`)
  yield* rest
})

const printRest = Effect.fnUntraced(function* (users: ReadonlyArray<User>) {
  const { lastSeq = 0 } = (yield* streamState(streams.log)) ?? {}
  const rows = yield* restOf(users, lastSeq)
  if (rows.length > 0) yield* Console.log(`\n${tableOr(rows, shownRest)}`)
})

const userErase = Command.make(
  "erase",
  {
    user: Argument.String("user").pipe(Argument.withDescription(userGivenHelp), Argument.optional),
    repeat: named("repeat", "FILE").pipe(
      Flag.withDescription(
        "Erase all again whom this list names and LOG does not, as after a restore"
      ),
      Flag.optional
    ),
    ...natsFlags
  },
  ({ repeat: file, user, ...nats }) =>
    Effect.gen(function* () {
      if (Option.isSome(user) === Option.isSome(file))
        return yield* failed("name a user, or a list with --repeat")
      if (Option.isSome(file)) return yield* repeat(file.value)
      const given = yield* userGiven(Option.getOrThrow(user))
      yield* demandLog
      yield* noteUnknown(given)
      const [fact] = yield* eraseAll([given.user])
      yield* Console.log(yield* erasureText(given, fact!))
    }).pipe(onNats(nats))
).pipe(
  Command.withDescription("Erase a user from LOG and the buckets, for ever"),
  Command.withExamples([
    { command: "bellcast user erase openid:anna", description: "Erase the user openid:anna" },
    {
      command: "bellcast user erase --repeat erased.jsonl",
      description: "After a backup was restored that is older than some erasures"
    }
  ])
)

const shownErased = {
  heading: ["ERASED", "PSEUDONYM", "BY"],
  cellsOf: ({ at, by, user }: ErasedLine) => [at, user, by],
  none: "nobody was erased"
}

const userErased = Command.make("erased", { json: jsonFlag, ...natsFlags }, ({ json, ...nats }) =>
  Effect.gen(function* () {
    yield* demandLog
    const rows: Array<ErasedLine> = []
    yield* (yield* EventLog).scan("log", [filters.erased], ({ at, message, subject }) => {
      const user = parseErasure(subject)
      if (user === undefined || message.type !== "user.erased") return
      const { by } = message
      rows.push({ user, at: new Date(at).toISOString(), ...(by === undefined ? {} : { by }) })
    })
    yield* printRows(json, rows, shownErased)
  }).pipe(onNats(nats))
).pipe(Command.withDescription("List who was erased, by pseudonym: keep it apart from backups"))

/** The verb. */
export const userCommand = Command.make("user").pipe(
  Command.withDescription("Show and erase users"),
  Command.withSubcommands([userShow, userErase, userErased])
)
