// The interface of an authentication policy: one way to identify a caller by request headers.
import type * as Effect from "effect/Effect"
import type { Links } from "./login/links.ts"
import type { LoginPages } from "./login/pages.ts"
import type {
  Credentials,
  IdentityUnavailable,
  TooManyFailures,
  Verdict,
  VerifyToken
} from "./verdict.ts"

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
   * those that name no local policy. A policy with this member is asked about bearer tokens only,
   * one without it about every request that names no local policy.
   */
  readonly bearer?:
    | { readonly kind: "local"; readonly isFor: (token: string) => boolean }
    | { readonly kind: "remote" }
  /** Whether all credentials are in Authorization. Else caches cannot tell callers apart. */
  readonly isInAuthorization?: true
  /** Whether `identify` waits for a server, a bucket or a module; then for `patienceMillis`. */
  readonly waits?: true
  /** Undefined: the request has no credentials for this policy. */
  readonly identify: (
    credentials: Credentials
  ) => Effect.Effect<Verdict | undefined, IdentityUnavailable | TooManyFailures>
  /** Whether the server on which the policy depends works; for the heartbeat. */
  readonly isUp?: Effect.Effect<boolean>
  /** Login pages for browsers that have no token. */
  readonly pages?: LoginPages
  /** Logins at the console by a link of a site. */
  readonly links?: Links
}

/** The members that all policies for bearer tokens share. `url`: of their specification. */
export const bearerPolicy = (
  name: string,
  description: string,
  url: string,
  verify: VerifyToken
) => ({
  name,
  verifies: true,
  isInAuthorization: true as const,
  challenge: 'Bearer realm="Realm"',
  capability: { description, url },
  identify: (credentials: Credentials) => verify(credentials.token, credentials)
})
