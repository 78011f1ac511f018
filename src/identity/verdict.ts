// What a policy gets from a request, and what it says: credentials, its verdict on them, and the
// errors of one that cannot say.
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/**
 * The longest time from a request to its caller, whatever the policies depend on: a request to a
 * provider, its retry, and what follows.
 */
export const identificationMillis = 7_000

/** The part of a request that policies look at. */
export interface Credentials {
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The scheme of the Authorization header in lower case; "" without the header. */
  readonly scheme: string
  /** The rest of the Authorization header. */
  readonly token: string
  /** The key of limits per address. */
  readonly address: string
  /** How long a policy may take. Policies that wait share `identificationMillis`. */
  readonly patienceMillis: number
  /** Whether the peer of the connection is one of BELLCAST_TRUSTED_PROXIES. */
  readonly fromTrustedProxy: boolean
  /** Whether a header arrived more than once: its value above is then all of them, joined. */
  readonly isRepeated: (header: string) => boolean
}

/** The client that sends a token. */
export type Asker = Pick<Credentials, "address" | "patienceMillis">

export type Verdict = Known | Invalid

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

/** The rights of a server's token. */
export interface TokenRights {
  /** Patterns of channels on which it publishes. */
  readonly channels: ReadonlyArray<string>
  /** Whether requests may name users. */
  readonly users: boolean
  readonly operator: boolean
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

/** The identity provider did not respond: the credentials could not be checked. */
export class IdentityUnavailable extends Schema.TaggedError<IdentityUnavailable>()(
  "IdentityUnavailable",
  {
    policy: Schema.String,
    cause: Schema.Defect()
  }
) {}

/** The client's address has sent too many credentials that no policy accepts. */
export class TooManyFailures extends Schema.TaggedError<TooManyFailures>()("TooManyFailures", {
  /** Milliseconds until the address may try again. */
  waitMillis: Schema.Finite
}) {}
