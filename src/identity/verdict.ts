// The verdict of a policy on the credentials of a request.
import type * as Effect from "effect/Effect"
import type { Asker } from "./credentials.ts"
import type { IdentityUnavailable, TooManyFailures } from "./errors.ts"

/** The rights of a server's token. */
export interface TokenRights {
  /** Patterns of channels on which it publishes. */
  readonly channels: ReadonlyArray<string>
  /** Whether requests may name users. */
  readonly users: boolean
  readonly operator: boolean
}

/** A user whom a policy found. */
export interface Known {
  readonly _tag: "Known"
  /** The user's id without the policy's prefix. */
  readonly user: string
  /** Names of groups, roles or scopes: each becomes a principal `group:<policy>:<name>`. */
  readonly groups: ReadonlyArray<string>
  /** The end of the credentials' validity, in milliseconds since the epoch. */
  readonly expiresAt?: number
  /** The rights of a token, which may do nothing else. Unset: as the settings and grants say. */
  readonly rights?: TokenRights
}

/** Credentials that are meant for the policy and are not valid (RFC 6750 section 3.1). */
export interface Invalid {
  readonly _tag: "Invalid"
  readonly error: "invalid_token" | "insufficient_scope"
  /** The fault, for the developer who sent the token; never a part of it. */
  readonly description?: string
  /** Whether the credentials may become valid in a moment. Then the verdict is not cached. */
  readonly isUnknown?: boolean
}

export type Verdict = Known | Invalid

export const known = (user: string, groups: ReadonlyArray<string> = []): Known => ({
  _tag: "Known",
  user,
  groups
})

export const invalidToken: Invalid = { _tag: "Invalid", error: "invalid_token" }
export const unknownToken: Invalid = { ...invalidToken, isUnknown: true }
export const insufficientScope: Invalid = { _tag: "Invalid", error: "insufficient_scope" }
export const invalidBecause = (description: string): Invalid => ({ ...invalidToken, description })

/** The verdict on a token that a client sends. */
export type VerifyToken = (
  token: string,
  asker: Asker
) => Effect.Effect<Verdict, IdentityUnavailable | TooManyFailures>
