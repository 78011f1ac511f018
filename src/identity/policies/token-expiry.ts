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

const told = { told: false }

const show = (state: { told: boolean }) =>
  Effect.gen(function* () {
    const entries = yield* (yield* Buckets).getMany("permissions", [keys.tokens], 0)
    if (entries !== undefined) return showTokens(expiriesOf(entries.map(({ value }) => value)))
    if (state.told) return
    state.told = true
    yield* Effect.logWarning("metrics cannot show when tokens end: there are more than 1,024")
  })

/** Reads the tokens every 15 s until the scope closes. */
export const showTokenExpiry = Effect.suspend(() => Effect.ignore(show(told))).pipe(
  Effect.andThen(Effect.sleep(every)),
  Effect.forever,
  Effect.forkScoped
)
