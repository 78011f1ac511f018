// The interface of an authentication policy: one way to identify a caller by request headers.
import type { Effect } from "effect"
import type { IdentityUnavailable, TooManyFailures } from "./errors.ts"
import type { LoginPages } from "./login/pages.ts"

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

/** A user whom a policy found. */
export interface Known {
  readonly _tag: "Known"
  /** The user's id without the policy's prefix. */
  readonly user: string
  /** Names of groups, roles or scopes: each becomes a principal `group:<policy>:<name>`. */
  readonly groups: ReadonlyArray<string>
  /** The end of the credentials' validity, in milliseconds since the epoch. */
  readonly expiresAt?: number
  /** Patterns of channels. The caller may publish on these and do nothing else. */
  readonly publishesOn?: ReadonlyArray<string>
}

/** Credentials that are meant for the policy and are not valid (RFC 6750 section 3.1). */
export interface Invalid {
  readonly _tag: "Invalid"
  readonly error: "invalid_token" | "insufficient_scope"
  /** The fault, for the developer who sent the token; never a part of it. */
  readonly description?: string
}

export const invalidToken: Invalid = { _tag: "Invalid", error: "invalid_token" }
export const insufficientScope: Invalid = { _tag: "Invalid", error: "insufficient_scope" }
export const invalidBecause = (description: string): Invalid => ({ ...invalidToken, description })

export const known = (user: string, groups: ReadonlyArray<string> = []): Known => ({
  _tag: "Known",
  user,
  groups
})

/** What a policy says of credentials; undefined: there are none for it. */
export type Verdict = Known | Invalid | undefined

export interface Policy {
  /** In lower case. The prefix of the policy's user ids. */
  readonly name: string
  /**
   * Whether the policy verifies callers. If not, anybody can be any number of users, so new users
   * are limited per address.
   */
  readonly verifies: boolean
  /** The challenge for WWW-Authenticate. */
  readonly challenge: string
  /** The policy's entry in `capabilities` of the root resource. */
  readonly capability: { readonly description: string; readonly url: string }
  /**
   * How the policy chooses among bearer tokens. `local`: it verifies tokens without a request, so
   * a token that names it goes to no other policy. `remote`: it sends tokens to a server, and gets
   * those that name no local policy. Undefined: the policy is asked about every request.
   */
  readonly bearer?:
    | { readonly kind: "local"; readonly isFor: (token: string) => boolean }
    | { readonly kind: "remote" }
  /** Whether all credentials are in Authorization. Else caches cannot tell callers apart. */
  readonly isInAuthorization?: true
  /** Whether `identify` waits for a server, a bucket or a module; then for `patienceMillis`. */
  readonly waits?: true
  readonly identify: (
    credentials: Credentials
  ) => Effect.Effect<Verdict, IdentityUnavailable | TooManyFailures>
  /** Whether the server on which the policy depends works; for the heartbeat. */
  readonly isUp?: Effect.Effect<boolean>
  /** Login pages for browsers that have no token. */
  readonly pages?: LoginPages
}
