// Why a caller could not be identified, in the detail that others act on.
import * as Schema from "effect/Schema"

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
