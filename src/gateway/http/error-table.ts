// Every error of the API, and every error of a request that is not complete or not HTTP.
import { payloadBytesMax } from "#domain/broadcast.ts"
import { subscriptionBytesMax } from "#domain/subscription/list-bounds.ts"
import { STATUS_CODES } from "./node-http.ts"

/** A row of the tables of errors. */
export interface Row {
  readonly code: number
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
export const phraseOf = ({ code, error }: Row): string => error ?? reasonPhrase(code)

const invalid = "Invalid parameters"
const contentTooLarge = { code: 413, errno: 113 } as const
const payloadLimit = `${payloadBytesMax} bytes of compact JSON`
const subscriptionLimit = `${subscriptionBytesMax} bytes of compact JSON`

const tooMany = <M extends string>(message: M) => ({ code: 429, errno: 117, message }) as const

/** Every error response. Several may share an errno: clients decide by `code` and `errno`. */
export const apiErrors = {
  /** An invalid header, query string, path or origin. */
  invalidRequest: { code: 400, errno: 107, error: invalid },
  invalidBody: { code: 400, errno: 109, error: invalid },
  /** A login that this browser did not begin, or whose proof is not believed. */
  invalidLogin: {
    code: 400,
    errno: 105,
    error: "Invalid Auth Token"
  },
  undecodable: {
    code: 400,
    errno: 107,
    message: "The URL is not valid UTF-8."
  },
  unauthenticated: {
    code: 401,
    errno: 104,
    message: "Please authenticate yourself to use this endpoint."
  },
  forbidden: {
    code: 403,
    errno: 121,
    message: "This user cannot access this resource."
  },
  unknownObject: { code: 404, errno: 110 },
  unknownUrl: {
    code: 404,
    errno: 111,
    message: "The resource you are looking for could not be found."
  },
  unknownVersion: {
    code: 404,
    errno: 116,
    message: "The requested API version is not available on this server."
  },
  methodNotAllowed: {
    code: 405,
    errno: 115,
    message: "Method not allowed on this endpoint."
  },
  notAcceptable: { code: 406, errno: 107, error: invalid },
  conflict: {
    code: 409,
    errno: 122,
    message: "Too many writes at once to the same resource, please retry later."
  },
  heldByAnother: {
    code: 409,
    errno: 123,
    message:
      "This endpoint is held by another user with other keys: " +
      "unsubscribe in the browser and subscribe anew."
  },
  impossibleState: {
    code: 409,
    errno: 124,
    message: "The broadcast cannot change from its state to this one."
  },
  endOfLife: {
    code: 410,
    errno: 202,
    message: "The service you are trying to connect no longer exists at this location."
  },
  modifiedMeanwhile: {
    code: 412,
    errno: 114,
    message: "Resource was modified meanwhile"
  },
  bodyTooLarge: {
    ...contentTooLarge,
    message: "The request body is too large."
  },
  payloadTooLarge: {
    ...contentTooLarge,
    message: `The data is too large for one push message (${payloadLimit}).`
  },
  subscriptionTooLarge: {
    ...contentTooLarge,
    message: `The subscription is too large: its data may have ${subscriptionLimit}.`
  },
  listTooLarge: {
    ...contentTooLarge,
    message:
      "This user's subscriptions would be larger than this server keeps for one user: " +
      "remove one first."
  },
  tooLargeForNats: {
    ...contentTooLarge,
    message: "The response is larger than NATS lets messages be: ask for fewer with _limit."
  },
  responseTooLarge: {
    ...contentTooLarge,
    message:
      "The batch's answer has no room left: this request was not made, send it in another batch."
  },
  unsupportedMediaType: { code: 415, errno: 107, error: invalid },
  tooManyAtOnce: tooMany(
    "This address has as many connections or requests under way as one address may have."
  ),
  tooManySubscriptions: tooMany(
    "This user holds as many subscriptions as this server keeps for one user: remove one first."
  ),
  tooManyAtHost: tooMany(
    "This user holds as many subscriptions at one push service as this server keeps for one " +
      "user: remove one first."
  ),
  tooManyFailures: tooMany(
    "Too many wrong credentials come from this address, please retry later."
  ),
  tooManyLogins: tooMany(
    "Too many logins were begun from or for this address, please retry later."
  ),
  tooManyNewUsers: tooMany("Too many new users come from this address, please retry later."),
  tooManyNewChannels: tooMany(
    "This user or address brings too many new channels, please retry later."
  ),
  tooManyMembers: tooMany("This caller registers too many members, please retry later."),
  tooManyMoves: tooMany(
    "This user takes over too many subscriptions of other users, please retry later."
  ),
  tooManyRequests: tooMany("This user or address sends too many requests, please retry later."),
  tooManyStreams: tooMany("This user follows as many broadcasts at once as one user may."),
  tooManyScheduled: tooMany(
    "Too many broadcasts wait for their start: cancel one, or publish this one later."
  ),
  tooManyChanges: tooMany("This user or address stores too many changes, please retry later."),
  tooManyRegistrations: tooMany(
    "This user is registered to as many channels as this server keeps for one user: " +
      "leave one first."
  ),
  internal: {
    code: 500,
    errno: 999,
    message: "A programmatic error occurred, developers have been informed."
  },
  noRoom: {
    code: 507,
    errno: 201,
    message: "This server has no room for more at the moment, please retry later."
  },
  unavailable: {
    code: 503,
    errno: 201,
    message: "Service temporary unavailable due to overloading or maintenance, please retry later."
  }
} as const satisfies Record<string, Row>

/** Errors in what a client sent before it is a complete HTTP request, by the code of Node.js. */
export const wireErrors = {
  HPE_HEADER_OVERFLOW: {
    code: 431,
    errno: 107,
    message: "The headers or the URL are too large."
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    code: 408,
    errno: 107,
    message: "The request did not arrive in time."
  },
  noHost: {
    code: 400,
    errno: 107,
    message: "The request does not name its Host."
  },
  wrongHost: {
    code: 400,
    errno: 107,
    message: "The request names its Host twice, or its Host is none."
  },
  twoAuthorizations: {
    code: 400,
    errno: 107,
    message: "The request has two Authorization headers."
  },
  other: { code: 400, errno: 107, message: "This is not HTTP." }
} as const satisfies Record<string, Row>

export type ErrorName = keyof typeof apiErrors
