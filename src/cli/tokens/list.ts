// `bellcast token list`: which tokens there are, and when each was used last. Never shows a token
// or its hash.

import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { type AccessToken, isCurrentToken } from "#domain/access-token.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { readServerTime } from "#nats/watch/server-time.ts"
import { keys } from "#streams/buckets.ts"
import { printable } from "#telemetry/printable.ts"
import { natsFlags, onNats } from "../nats/nats.ts"
import { jsonFlag } from "../terminal/flags.ts"
import { printRows } from "../terminal/table.ts"
import { allTokens, type Named } from "./tokens.ts"

const readsAtOnce = 16

type State = "valid" | "expired" | "revoked"

const stateOf = (token: AccessToken, now: number): State => {
  if (token.revokedAt !== undefined) return "revoked"
  return isCurrentToken(token, now) ? "valid" : "expired"
}

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
  readonly lastUse: string | null
  readonly revoked: string | null
}

const iso = (millis: number | undefined) =>
  millis === undefined ? null : new Date(millis).toISOString()

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
    lastUse: use?.value.day ?? null,
    revoked: iso(revokedAt)
  }
})

const rows = Effect.gen(function* () {
  const tokens: ReadonlyArray<Named> = [...(yield* allTokens).values()]
  const now = (yield* readServerTime).serverMillis
  const known = tokens.flatMap(({ hash, token }) => (token === undefined ? [] : [{ hash, token }]))
  const read = yield* Effect.forEach(known, ({ hash, token }) => rowOf(hash, token, now), {
    concurrency: readsAtOnce
  })
  return read.sort((a, b) => (a.name < b.name ? -1 : 1))
})

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
  row.lastUse ?? "-",
  row.revoked?.slice(0, 10) ?? "-"
]

const listFlags = {
  json: jsonFlag,
  ...natsFlags
}

/** The verb. */
export const listCommand = Command.make("list", listFlags, ({ json, ...nats }) =>
  Effect.gen(function* () {
    yield* printRows(json, yield* rows, { heading, cellsOf, none: "there is no token" })
  }).pipe(onNats(nats))
).pipe(Command.withDescription("List the tokens, with the day of their last use"))
