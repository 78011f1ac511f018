// Shows as metrics when each token of a server ends, so that its operator is told before: from then
// on the server's requests get 401.
import * as Effect from "effect/Effect"
import type { AccessToken } from "#domain/access-token.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"
import { showTokens } from "#telemetry/request-metrics.ts"

const every = "15 seconds"

/** The newest token of each name, but for those that were revoked or never end. */
const expiriesOf = (tokens: ReadonlyArray<AccessToken>) => {
  const newest = new Map(
    [...tokens].sort((a, b) => a.createdAt - b.createdAt).map((each) => [each.name, each])
  )
  return [...newest.values()].flatMap(({ expiresAt, name, revokedAt }) =>
    expiresAt === undefined || revokedAt !== undefined ? [] : [{ expiresAt, name }]
  )
}

const show = Effect.gen(function* () {
  const entries = yield* (yield* Buckets).getMany("permissions", [keys.tokens], 0)
  // Undefined: more tokens than one response holds (1,024).
  if (entries !== undefined) showTokens(expiriesOf(entries.map(({ value }) => value)))
})

/** Reads the tokens every 15 s until the scope closes. */
export const showTokenExpiry = Effect.ignore(show).pipe(
  Effect.andThen(Effect.sleep(every)),
  Effect.forever,
  Effect.forkScoped
)
