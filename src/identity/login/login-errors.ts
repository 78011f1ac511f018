// Why a login ended without a token: what a page gets instead of one, and what people read. Pure.

const needsUser = "The login provider has a question for you. Please log in again."

/**
 * The sentences of all errors. Their codes are those of RFC 6749 section 4.1.2.1 and of OpenID
 * Connect Core section 3.1.2.6 where one fits; `expired` and `other_browser` are ours. Pages get
 * no `other_browser`: only a browser that began a login is sent to one.
 */
export const loginErrors = {
  access_denied: "The login was cancelled, or the login provider refused it.",
  login_required: "Nobody is logged in at the login provider.",
  interaction_required: needsUser,
  consent_required: needsUser,
  account_selection_required: needsUser,
  expired: "This login took longer than 15 minutes. Please log in again.",
  invalid_request: "This login is over, or a later one took its place. Please log in again.",
  other_browser: "This browser did not begin this login, or it is over.",
  server_error:
    "This service cannot use what the login provider says. Its log tells the operator why.",
  temporarily_unavailable: "Logins do not work at the moment. Please try again in a few minutes."
} as const

export type LoginErrorCode = keyof typeof loginErrors

/** Errors that providers send, and that say as much to the page as ours. */
const passedOn: ReadonlyArray<LoginErrorCode> = [
  "access_denied",
  "login_required",
  "interaction_required",
  "consent_required",
  "account_selection_required",
  "temporarily_unavailable"
]

/** Our code for an error of the provider. Others mean that we did not get along. */
export const codeOfProvider = (error: string): LoginErrorCode =>
  passedOn.find((code) => code === error) ?? "server_error"
