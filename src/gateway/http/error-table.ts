// Every error of the API, and every error of a request that is not complete or not HTTP.
import { payloadBytesMax } from "#domain/broadcast.ts"
import { subscriptionBytesMax } from "#domain/subscription/subscription.ts"
import { STATUS_CODES } from "./node-http.ts"

/** A row of the table of errors. */
export interface Row {
  readonly status: number
  readonly errno: number
  /** Unset: the reason phrase of the status. */
  readonly error?: string
  readonly message?: string
}

/** Node.js 24 has "Payload Too Large" for 413, the name before RFC 9110. */
const renamed: Readonly<Record<number, string>> = { 413: "Content Too Large" }

/** The reason phrase of RFC 9110 section 15, or of the RFC that defines the status. */
export const reasonPhrase = (status: number): string =>
  renamed[status] ?? STATUS_CODES[status] ?? ""

/** The `error` of a response. */
export const phraseOf = ({ error, status }: Row): string => error ?? reasonPhrase(status)

const invalid = "Invalid parameters"
const contentTooLarge = { status: 413, errno: 113 } as const
const payloadLimit = `${payloadBytesMax} bytes of compact JSON`
const subscriptionLimit = `${subscriptionBytesMax} bytes of compact JSON`

const tooMany = <M extends string>(message: M) => ({ status: 429, errno: 117, message }) as const

/**
 * Every error, by its `error_code`. A code is for ever: clients decide by it. Several errors share
 * an errno, as in the protocol of Kinto.
 */
export const apiErrors = {
  /** An invalid header, query string, path or origin. */
  "invalid-request": { status: 400, errno: 107, error: invalid },
  "invalid-body": { status: 400, errno: 109, error: invalid },
  /** A login that this browser did not begin, or whose proof or link is not believed. */
  "invalid-login": {
    status: 400,
    errno: 105,
    error: "Invalid Auth Token"
  },
  /** A link to the console that was used before, or is over. */
  "used-link": { status: 400, errno: 105, error: "Invalid Auth Token" },
  "expired-link": { status: 400, errno: 105, error: "Invalid Auth Token" },
  "undecodable-url": {
    status: 400,
    errno: 107,
    message: "The URL is not valid UTF-8."
  },
  unauthenticated: {
    status: 401,
    errno: 104,
    message: "Please authenticate yourself to use this endpoint."
  },
  forbidden: {
    status: 403,
    errno: 121,
    message: "This user cannot access this resource."
  },
  "unknown-object": { status: 404, errno: 110 },
  "unknown-url": {
    status: 404,
    errno: 111,
    message: "The resource you are looking for could not be found."
  },
  "unknown-version": {
    status: 404,
    errno: 116,
    message: "The requested API version is not available on this server."
  },
  "method-not-allowed": {
    status: 405,
    errno: 115,
    message: "Method not allowed on this endpoint."
  },
  "not-acceptable": { status: 406, errno: 107, error: invalid },
  "too-many-writes": {
    status: 409,
    errno: 122,
    message: "Too many writes at once to the same resource, please retry later."
  },
  "held-by-another": {
    status: 409,
    errno: 123,
    message:
      "This endpoint is held by another user with other keys: " +
      "unsubscribe in the browser and subscribe anew."
  },
  "impossible-state": {
    status: 409,
    errno: 124,
    message: "The broadcast cannot change from its state to this one."
  },
  "end-of-life": {
    status: 410,
    errno: 202,
    message: "The service you are trying to connect no longer exists at this location."
  },
  "modified-meanwhile": {
    status: 412,
    errno: 114,
    message: "Resource was modified meanwhile"
  },
  /** The request names a user (If-User), and another one sends it. */
  "another-user": {
    status: 412,
    errno: 114,
    message: "The request is for another user than the one who is logged in: nothing was done."
  },
  "precondition-required": {
    status: 428,
    errno: 125,
    message:
      "Say which state this is about: If-Match with the ETag that was read, or, for what does " +
      "not " +
      "exist yet, If-None-Match: *."
  },
  "body-too-large": {
    ...contentTooLarge,
    message: "The request body is too large."
  },
  "payload-too-large": {
    ...contentTooLarge,
    message: `The data is too large for one push message (${payloadLimit}).`
  },
  "subscription-too-large": {
    ...contentTooLarge,
    message: `The subscription is too large: its data may have ${subscriptionLimit}.`
  },
  "list-too-large": {
    ...contentTooLarge,
    message:
      "This user's subscriptions would be larger than this server keeps for one user: " +
      "remove one first."
  },
  "too-large-for-nats": {
    ...contentTooLarge,
    message: "The response is larger than NATS lets messages be: ask for fewer with _limit."
  },
  "response-too-large": {
    ...contentTooLarge,
    message:
      "The batch's answer has no room left: this request was not made, send it in another batch."
  },
  "unsupported-media-type": { status: 415, errno: 107, error: invalid },
  "too-many-at-once": tooMany(
    "As many connections or requests of this address or user are under way as one may have."
  ),
  "too-many-subscriptions": tooMany(
    "This user holds as many subscriptions as this server keeps for one user: remove one first."
  ),
  "too-many-at-push-service": tooMany(
    "This user holds as many subscriptions at one push service as this server keeps for one " +
      "user: remove one first."
  ),
  "too-many-wrong-credentials": tooMany(
    "Too many wrong credentials come from this address, please retry later."
  ),
  "too-many-logins": tooMany(
    "Too many logins were begun from or for this address, please retry later."
  ),
  "too-many-new-users": tooMany("Too many new users come from this address, please retry later."),
  "too-many-new-channels": tooMany(
    "This user or address brings too many new channels, please retry later."
  ),
  "too-many-members": tooMany("This caller registers too many members, please retry later."),
  "too-many-moves": tooMany(
    "This user takes over too many subscriptions of other users, please retry later."
  ),
  "too-many-requests": tooMany("This user or address sends too many requests, please retry later."),
  "too-many-streams": tooMany("This user follows as many broadcasts at once as one user may."),
  "too-many-scheduled": tooMany(
    "Too many broadcasts wait for their start: cancel one, or publish this one later."
  ),
  "too-many-broadcast-bytes": tooMany(
    "The broadcasts of this publisher take too much storage, please retry later."
  ),
  "too-many-draft-bytes": tooMany(
    "The drafts of this user take too much storage, please retry later."
  ),
  "too-many-drafts": tooMany(
    "This user has as many drafts as one may have: publish or delete one first."
  ),
  "too-many-changes": tooMany("This user or address stores too many changes, please retry later."),
  "too-many-registrations": tooMany(
    "This user is registered to as many channels as this server keeps for one user: " +
      "leave one first."
  ),
  internal: {
    status: 500,
    errno: 999,
    message: "A programmatic error occurred, developers have been informed."
  },
  "no-room": {
    status: 507,
    errno: 201,
    message: "This server has no room for more at the moment, please retry later."
  },
  unavailable: {
    status: 503,
    errno: 201,
    message: "Service temporary unavailable due to overloading or maintenance, please retry later."
  },
  // What a client sent before it is a complete HTTP request.
  "headers-too-large": {
    status: 431,
    errno: 107,
    message: "The headers or the URL are too large."
  },
  "request-timeout": {
    status: 408,
    errno: 107,
    message: "The request did not arrive in time."
  },
  "no-host": {
    status: 400,
    errno: 107,
    message: "The request does not name its Host."
  },
  "wrong-host": {
    status: 400,
    errno: 107,
    message: "The request names its Host twice, or its Host is none."
  },
  "two-authorizations": {
    status: 400,
    errno: 107,
    message: "The request has two Authorization headers."
  },
  "not-http": {
    status: 400,
    errno: 107,
    message: "This is not HTTP."
  }
} as const satisfies Record<string, Row>

/** The text by which clients tell errors apart: `error_code` of a response. */
export type ErrorCode = keyof typeof apiErrors

/** Errors of the parser of Node.js, by its code; any other is `not-http`. */
export const parserErrors: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: "headers-too-large",
  ERR_HTTP_REQUEST_TIMEOUT: "request-timeout"
}
