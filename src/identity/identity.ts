// Identifies callers: the first policy that accepts the request's credentials decides.
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { makeLruCache } from "#basics/lru-cache.ts"
import { Settings } from "#config"
import type { UserToken } from "#streams/tokens.ts"
import { basic } from "./basic.ts"
import type { IdentityUnavailable, Policy } from "./policy.ts"
import { pseudonyms } from "./pseudonym.ts"

export interface Caller {
  /** `<policy>:<id>` */
  readonly id: string
  readonly policy: string
  /** Whether the policy verified the caller. */
  readonly verified: boolean
  /** The pseudonym of the caller in subjects and keys. */
  readonly user: UserToken
  readonly principals: ReadonlyArray<string>
}

/** The most callers in the cache, which saves computing pseudonyms. Stores ids, not credentials. */
const cachedMax = 5_000

export class Identity extends Context.Service<
  Identity,
  {
    /** The caller; undefined when credentials are missing or wrong. */
    readonly identify: (
      headers: Readonly<Record<string, string | undefined>>
    ) => Effect.Effect<Caller | undefined, IdentityUnavailable>
    readonly policies: ReadonlyArray<Policy>
  }
>()("bellcast/identity/Identity") {
  static readonly layer = Layer.effect(
    Identity,
    Effect.gen(function* () {
      const settings = yield* Settings
      const secret = Option.match(settings.useridHmacSecret, {
        onNone: () => "",
        onSome: Redacted.value
      })
      const policies: ReadonlyArray<Policy> = [basic(secret)]
      yield* Effect.logWarning(
        "basic auth is on: any user name and password make a user, " +
          "do not expose this to the internet"
      )

      const pseudonymOf = pseudonyms(secret)
      const callers = makeLruCache<Caller>(cachedMax)
      const callerOf = ({ name: policy, verifies: verified }: Policy, known: string): Caller => {
        const id = `${policy}:${known}`
        return callers.of(id, () => ({
          id,
          policy,
          verified,
          user: pseudonymOf(id),
          principals: [id, "system.Everyone", "system.Authenticated"]
        }))
      }

      const identify = Effect.fnUntraced(function* (
        headers: Readonly<Record<string, string | undefined>>
      ) {
        for (const policy of policies) {
          const known = yield* policy.identify(headers)
          if (known === undefined) continue
          return callerOf(policy, known)
        }
        return undefined
      })

      return Identity.of({ identify, policies })
    })
  )
}
