// `bellcast token create|list|revoke`: tokens of servers that publish (the policy `token`). A token
// is printed once, when it is made; no verb shows a token or its hash. A second after it is revoked
// no gateway accepts it.
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import {
  type AccessToken,
  type AccessTokenCommand,
  foldAccessToken,
  isCurrentToken,
  tokenChannelsFault,
  tokenNameFault
} from "#domain/access-token.ts"
import { freshToken, hashOfToken } from "#identity/policies/token.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { readServerTime } from "#nats/watch/server-time.ts"
import { keys } from "#streams/buckets.ts"
import { filters, parseToken, subjects } from "#streams/subjects.ts"
import { printable } from "#telemetry/redaction.ts"
import { printLeftStanding } from "./nats/broadcasts.ts"
import { demandLog, demandRoom, untilApplied } from "./nats/log.ts"
import { natsFlags, onNats } from "./nats/on-nats.ts"
import { argument, jsonFlag, named, onOff, several, spanFlag } from "./terminal/input.ts"
import { failed, note, printRows } from "./terminal/output.ts"

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
  const seq = yield* appendToken(name, { type: "token.put", ...body }, expect)
  // The token is stored from here on: print it, also if it takes effect later.
  yield* Console.log(token)
  const until = expiresAt === undefined ? "" : ` until ${new Date(expiresAt).toISOString()}`
  const may = [
    ...(channels.length > 0 ? [`publish on ${channels.join(", ")}`] : []),
    ...(users ? ["name any user"] : []),
    ...(operator ? ["act as an operator"] : [])
  ].join(" and ")
  yield* note(
    `whoever has this token may ${may}${until}; it is not shown again. Gateways take it where ` +
      "BELLCAST_AUTH_POLICIES names token"
  )
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

const createCommand = Command.make(
  "create",
  createFlags,
  ({ channels, expires, name, operator, users, ...nats }) =>
    create(name, channels, { operator, users }, expires).pipe(onNats(nats))
).pipe(Command.withDescription("Make a token of a server, and print it once"))

const rows = Effect.gen(function* () {
  const tokens: ReadonlyArray<Named> = [...(yield* allTokens).values()]
  const now = (yield* readServerTime).serverMillis
  const known = tokens.flatMap(({ hash, token }) => (token === undefined ? [] : [{ hash, token }]))
  const read = yield* Effect.forEach(known, ({ hash, token }) => rowOf(hash, token, now), {
    concurrency: readsAtOnce
  })
  return read.sort((a, b) => (a.name < b.name ? -1 : 1))
})

const rowOf = Effect.fnUntraced(function* (
  hash: string,
  token: AccessToken,
  now: number
): Effect.fn.Return<Row, never, Buckets> {
  // The list is worth showing without the days of last use.
  const use = yield* Effect.orElseSucceed(
    (yield* Buckets).get("cache", keys.tokenUse(hash)),
    () => undefined
  )
  const { channels, createdAt, expiresAt, name, revokedAt } = token
  const { operator = false, users = false } = token
  return {
    name,
    channels,
    users,
    operator,
    state: stateOf(token, now),
    created: iso(createdAt)!,
    expires: iso(expiresAt),
    last_use: use?.value.day ?? null,
    revoked: iso(revokedAt)
  }
})

/** A token as it is shown. Times are ISO 8601; null: never, or not known. */
interface Row {
  readonly name: string
  readonly channels: ReadonlyArray<string>
  /** Whether its requests may name users. */
  readonly users: boolean
  readonly operator: boolean
  readonly state: State
  readonly created: string
  readonly expires: string | null
  /** A day in UTC. Null: never used, or the bucket `cache` was lost since. */
  readonly last_use: string | null
  readonly revoked: string | null
}

type State = "valid" | "expired" | "revoked"

const stateOf = (token: AccessToken, now: number): State => {
  if (token.revokedAt !== undefined) return "revoked"
  return isCurrentToken(token, now) ? "valid" : "expired"
}

const iso = (millis: number | undefined) =>
  millis === undefined ? null : new Date(millis).toISOString()

const readsAtOnce = 16

const heading = [
  ...["NAME", "CHANNELS", "USERS", "OPERATOR", "STATE", "CREATED", "EXPIRES", "LAST USE", "REVOKED"]
]

const cellsOf = ({ channels, name, operator, state, users, ...row }: Row) => [
  name,
  printable(channels.join(" ")) || "-",
  users ? "any" : "-",
  operator ? "yes" : "-",
  state,
  row.created.slice(0, 10),
  row.expires?.slice(0, 10) ?? "never",
  row.last_use ?? "-",
  row.revoked?.slice(0, 10) ?? "-"
]

const listFlags = {
  json: jsonFlag,
  ...natsFlags
}

const listCommand = Command.make("list", listFlags, ({ json, ...nats }) =>
  Effect.gen(function* () {
    yield* printRows(json, yield* rows, { heading, cellsOf, none: "there is no token" })
  }).pipe(onNats(nats))
).pipe(Command.withDescription("List the tokens, with the day of their last use"))

const revoke = Effect.fnUntraced(function* (name: string) {
  const { hash, seq: last, token } = yield* tokenNamed(name)
  if (token === undefined) return yield* failed(`there is no token ${name}`)
  const isStored = token.revokedAt !== undefined
  const seq = isStored ? last : yield* append(name, hash, last)
  // Wait also for the command of an earlier try, which may have ended before its effect.
  yield* untilApplied("permissions", keys.token(hash), seq)
  const effect = isStored ? "nothing to change" : "within a second no gateway accepts it"
  yield* Console.log(`the token ${name} is revoked: ${effect}`)
  yield* printLeftStanding(`token:${name}`)
})

const append = Effect.fnUntraced(function* (name: string, hash: string, expect: number) {
  const at = (yield* readServerTime).serverMillis
  return yield* appendToken(name, { type: "token.delete", hash, at }, expect)
})

const name = argument("name", "The name of the token")

const revokeCommand = Command.make("revoke", { name, ...natsFlags }, ({ name, ...nats }) =>
  revoke(name).pipe(onNats(nats))
).pipe(Command.withDescription("Revoke a token, everywhere and for ever"))

/** The verb. */
export const tokenCommand = Command.make("token").pipe(
  Command.withDescription("Make and revoke tokens of servers"),
  Command.withSubcommands([createCommand, listCommand, revokeCommand])
)

/** Appends a command. Fails if another operator writes at the same time. Returns its sequence. */
const appendToken = Effect.fnUntraced(function* (
  name: string,
  { type, ...body }: AccessTokenCommand,
  expect: number
) {
  const message = { subject: subjects.token(name), type, body, expect }
  return (yield* (yield* EventLog).append("log", message)).seq
})

/** The last token of a name. Fails if there can be no such name. */
const tokenNamed = Effect.fnUntraced(function* (name: string) {
  const fault = tokenNameFault(name)
  if (fault !== undefined) return yield* failed(fault)
  return (yield* tokensOf(subjects.token(name))).get(name) ?? noToken
})

/** The tokens whose commands a filter matches, by name. */
const tokensOf = Effect.fnUntraced(function* (filter: string) {
  const log = yield* EventLog
  yield* demandLog
  const tokens = new Map<string, Named>()
  yield* log.replay("log", [filter], ({ message, seq, subject }) => {
    const name = parseToken(subject)
    if (name === undefined) return
    const before = tokens.get(name) ?? noToken
    tokens.set(name, isCommand(message) ? nextOf(before, message, name, seq) : { ...before, seq })
  })
  return tokens
})

const allTokens = tokensOf(filters.tokens)

const nextOf = (before: Named, command: AccessTokenCommand, name: string, seq: number): Named => {
  const { hash } = command
  const known = hash === before.hash ? before.token : undefined
  const { reason, token } = foldAccessToken(known, command, name, seq)
  return reason === undefined ? { seq, hash, token } : { ...before, seq }
}

const isCommand = (message: { readonly type: string }): message is AccessTokenCommand =>
  message.type.startsWith("token.")

/** The last token of a name. */
interface Named {
  /** Sequence of the last message, applied or rejected. */
  readonly seq: number
  readonly hash: string
  readonly token: AccessToken | undefined
}

const noToken: Named = { seq: 0, hash: "", token: undefined }
