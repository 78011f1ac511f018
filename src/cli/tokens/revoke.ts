// `bellcast token revoke NAME`: no gateway accepts the token a second later.

import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { readServerTime } from "#nats/watch/server-time.ts"
import { keys } from "#streams/buckets.ts"
import { printLeftStanding } from "../broadcasts/left-standing.ts"
import { untilApplied } from "../nats/applied.ts"
import { natsFlags, onNats } from "../nats/nats.ts"
import { failed } from "../terminal/failed.ts"
import { argument } from "../terminal/flags.ts"
import { appendToken, tokenNamed } from "./tokens.ts"

const append = Effect.fnUntraced(function* (name: string, hash: string, expect: number) {
  const at = (yield* readServerTime).serverMillis
  return yield* appendToken(name, { type: "token.delete/1", hash, at }, expect)
})

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

const name = argument("name", "The name of the token")

/** The verb. */
export const revokeCommand = Command.make("revoke", { name, ...natsFlags }, ({ name, ...nats }) =>
  revoke(name).pipe(onNats(nats))
).pipe(Command.withDescription("Revoke a token, everywhere and for ever"))
