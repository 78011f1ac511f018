// What an authentication policy is: one way to tell from a request's headers who is asking.
import { type Effect, Schema } from "effect"

/** Whoever vouches for the caller did not answer: nothing is known about the credentials. */
export class IdentityUnavailable extends Schema.TaggedError<IdentityUnavailable>()(
  "IdentityUnavailable",
  {
    policy: Schema.String,
    cause: Schema.Defect()
  }
) {}

export interface Policy {
  /** Lower case; the prefix of every user id it hands out. */
  readonly name: string
  /**
   * Whether somebody vouches for the caller. If not, anybody can be any number of users, and new
   * ones are counted by their address.
   */
  readonly verifies: boolean
  /** Its WWW-Authenticate challenge. */
  readonly challenge: string
  /** What the root resource tells clients about it. */
  readonly capability: { readonly description: string; readonly url: string }
  /** The user's id without prefix; undefined when these headers hold nothing this policy accepts. */
  readonly identify: (
    headers: Readonly<Record<string, string | undefined>>
  ) => Effect.Effect<string | undefined, IdentityUnavailable>
}
