// The end of a caller's rights while a stream is open.
import * as Effect from "effect/Effect"
import type { Origin } from "#broadcasts/state.ts"
import { Identity } from "#identity/identity.ts"
import { maySee } from "../broadcasts/broadcast.ts"
import type { Call } from "../http/request.ts"

/** The credentials are looked at once a second, the other rights at every so many looks. */
const looksAMinute = 60

/** The caller of a request as of now. Undefined: the credentials are those of nobody any more. */
const callerNow = Effect.fnUntraced(function* ({ caller, request }: Call) {
  const now = yield* (yield* Identity).identify(request)
  return now.caller?.id === caller?.id ? now.caller : undefined
})

/**
 * Returns when the caller may not see a broadcast any more. What cannot be found out now, because
 * NATS or an identity server is away, is looked at again a second or a minute later.
 */
export const endOfRights = Effect.fnUntraced(function* (call: Call, origin: Origin) {
  let caller = call.caller
  for (let look = 1; ; look++) {
    yield* Effect.sleep("1 second")
    caller = yield* callerNow(call).pipe(
      Effect.catchTags({
        IdentityUnavailable: () => Effect.succeed(caller),
        TooManyFailures: () => Effect.succeed(undefined)
      })
    )
    if (caller === undefined) return
    if (look % looksAMinute > 0) continue
    if (!(yield* Effect.orElseSucceed(maySee(caller, origin), () => true))) return
  }
})
