// Remembers which of several remote policies knows a token, and asks that one first. Else each
// token of the last policy would be sent to all servers before it, every ten seconds.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { LruCache } from "#basics/bounded.ts"
import type { Policy } from "../policy.ts"
import { IdentitySettings } from "../settings.ts"
import type { Credentials } from "../verdict.ts"
import { credentialKeys } from "./verifications.ts"

/** About 150 bytes each. */
const ownersMax = 20_000

const isRemote = ({ bearer }: Policy): boolean => bearer?.kind === "remote"

export const makeTokenOwners = Effect.gen(function* () {
  const keyOf = yield* credentialKeys
  const { authVerificationTtlSeconds } = yield* IdentitySettings
  const owners = new LruCache<string>(ownersMax)
  const ownerOf = (token: string, now: number) => owners.get(keyOf("owner", token), now)

  /** The policies in the order in which they are asked about these credentials. */
  const order = Effect.fnUntraced(function* (
    policies: ReadonlyArray<Policy>,
    { token }: Credentials
  ) {
    if (policies.filter(isRemote).length < 2) return policies
    const owner = ownerOf(token, yield* Clock.currentTimeMillis)
    if (owner === undefined) return policies
    const isLater = (policy: Policy) => isRemote(policy) && policy.name !== owner
    return [...policies.filter((each) => !isLater(each)), ...policies.filter(isLater)]
  })

  /** Remembers the policy that knew the token, for as long as a verification holds. */
  const knew = Effect.fnUntraced(function* (
    policies: ReadonlyArray<Policy>,
    { token }: Credentials,
    policy: Policy
  ) {
    if (!isRemote(policy) || policy === policies.find(isRemote)) return
    const now = yield* Clock.currentTimeMillis
    // Never extended by use: the order in the setting counts again after this time.
    if (ownerOf(token, now) === policy.name) return
    owners.set(keyOf("owner", token), policy.name, now + authVerificationTtlSeconds * 1000)
  })
  return { order, knew }
})
