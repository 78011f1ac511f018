// The interface of an authentication policy: one way to identify a caller by request headers.
import { type Effect, Schema } from "effect"

/** The identity provider did not respond: the credentials could not be checked. */
export class IdentityUnavailable extends Schema.TaggedError<IdentityUnavailable>()(
  "IdentityUnavailable",
  {
    policy: Schema.String,
    cause: Schema.Defect()
  }
) {}

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
  /** The user's id without prefix; undefined without credentials that this policy accepts. */
  readonly identify: (
    headers: Readonly<Record<string, string | undefined>>
  ) => Effect.Effect<string | undefined, IdentityUnavailable>
}
