// `bellcast token create NAME --channel PATTERN --users --operator --expires SPAN`: makes a token
// and prints it, this once.
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { isCurrentToken, tokenChannelsFault } from "#domain/access-token.ts"
import { freshToken, hashOfToken } from "#identity/tokens/own-token.ts"
import { readServerTime } from "#nats/watch/server-time.ts"
import { keys } from "#streams/buckets.ts"
import { untilApplied } from "../nats/applied.ts"
import { natsFlags, onNats } from "../nats/nats.ts"
import { demandRoom } from "../nats/room.ts"
import { failed } from "../terminal/failed.ts"
import { argument, named, onOff, several } from "../terminal/flags.ts"
import { note } from "../terminal/note.ts"
import { spanFlag } from "../terminal/times.ts"
import { appendToken, tokenNamed } from "./tokens.ts"

const create = Effect.fnUntraced(function* (
  name: string,
  channels: ReadonlyArray<string>,
  others: { readonly users: boolean; readonly operator: boolean },
  validMillis: number
) {
  const { operator, users } = others
  const fault = tokenChannelsFault(channels, users || operator)
  if (fault !== undefined) return yield* failed(`--channel: ${fault}`)
  const now = (yield* readServerTime).serverMillis
  const expiresAt = Number.isFinite(validMillis) ? now + validMillis : undefined
  const { seq: expect, token: former } = yield* tokenNamed(name)
  if (former !== undefined && isCurrentToken(former, now))
    return yield* failed(
      `there is a token ${name}: choose another name, or first run ` +
        `\`bellcast token revoke ${name}\``
    )
  yield* demandRoom("permissions")
  const token = freshToken()
  const hash = hashOfToken(token)
  const rights = { channels, ...(users && { users }), ...(operator && { operator }) }
  const body = { hash, ...rights, at: now, ...(expiresAt === undefined ? {} : { expiresAt }) }
  const seq = yield* appendToken(name, { type: "token.put/1", ...body }, expect)
  // The token is stored from here on: print it, also if it takes effect later.
  yield* Console.log(token)
  const until = expiresAt === undefined ? "" : ` until ${new Date(expiresAt).toISOString()}`
  const may = [
    ...(channels.length > 0 ? [`publish on ${channels.join(", ")}`] : []),
    ...(users ? ["name any user"] : []),
    ...(operator ? ["act as an operator"] : [])
  ].join(" and ")
  yield* note(`whoever has this token may ${may}${until}; it is not shown again`)
  yield* Effect.catchTag(
    untilApplied("permissions", keys.token(hash), seq),
    "VerbFailed",
    ({ message }) => note(message)
  )
})

const createFlags = {
  name: argument("name", "Names the server; its id is token:NAME"),
  channels: several(
    named("channel", "PATTERN"),
    "A channel, or a pattern in which * stands for any text"
  ),
  users: onOff("users", "Let its requests name users, such as to log one out everywhere"),
  operator: onOff(
    "operator",
    "Make it an operator: it sees and stops broadcasts, sees users and restores"
  ),
  expires: spanFlag("expires", "How long it is valid, or never"),
  ...natsFlags
}

/** The verb. */
export const createCommand = Command.make(
  "create",
  createFlags,
  ({ channels, expires, name, operator, users, ...nats }) =>
    create(name, channels, { operator, users }, expires).pipe(onNats(nats))
).pipe(Command.withDescription("Make a token of a server, and print it once"))
