// Every error response of the API, in one table, and the functions that make their bodies.
import { payloadBytesMax } from "#domain/broadcast.ts"
import { subscriptionBytesMax } from "#domain/subscription/list-bounds.ts"
import { type ApiResponse, Refused } from "./request.ts"

/** A row of the tables of errors. */
export interface Row {
  readonly code: number
  readonly errno: number
  readonly error: string
  readonly message?: string
}

const invalid = "Invalid parameters"
const contentTooLarge = { code: 413, errno: 113, error: "Content Too Large" } as const
const payloadLimit = `${payloadBytesMax} bytes of compact JSON`
const subscriptionLimit = `${subscriptionBytesMax} bytes of compact JSON`

const tooMany = <M extends string>(message: M) =>
  ({ code: 429, errno: 117, error: "Too Many Requests", message }) as const

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
    error: "Bad Request",
    message: "The URL is not valid UTF-8."
  },
  unauthenticated: {
    code: 401,
    errno: 104,
    error: "Unauthorized",
    message: "Please authenticate yourself to use this endpoint."
  },
  forbidden: {
    code: 403,
    errno: 121,
    error: "Forbidden",
    message: "This user cannot access this resource."
  },
  unknownObject: { code: 404, errno: 110, error: "Not Found" },
  unknownUrl: {
    code: 404,
    errno: 111,
    error: "Not Found",
    message: "The resource you are looking for could not be found."
  },
  unknownVersion: {
    code: 404,
    errno: 116,
    error: "Not Found",
    message: "The requested API version is not available on this server."
  },
  methodNotAllowed: {
    code: 405,
    errno: 115,
    error: "Method Not Allowed",
    message: "Method not allowed on this endpoint."
  },
  notAcceptable: { code: 406, errno: 107, error: invalid },
  conflict: {
    code: 409,
    errno: 122,
    error: "Conflict",
    message: "Too many writes at once to the same resource, please retry later."
  },
  endOfLife: {
    code: 410,
    errno: 202,
    error: "Gone",
    message: "The service you are trying to connect no longer exists at this location."
  },
  modifiedMeanwhile: {
    code: 412,
    errno: 114,
    error: "Precondition Failed",
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
  tooManyRequests: tooMany("This user or address sends too many requests, please retry later."),
  tooManyChanges: tooMany("This user or address stores too many changes, please retry later."),
  tooManyRegistrations: tooMany(
    "This user is registered to as many channels as this server keeps for one user: " +
      "leave one first."
  ),
  internal: {
    code: 500,
    errno: 999,
    error: "Internal Server Error",
    message: "A programmatic error occurred, developers have been informed."
  },
  noRoom: {
    code: 507,
    errno: 201,
    error: "Insufficient Storage",
    message: "This server has no room for more at the moment, please retry later."
  },
  unavailable: {
    code: 503,
    errno: 201,
    error: "Service Unavailable",
    message: "Service temporary unavailable due to overloading or maintenance, please retry later."
  }
} as const satisfies Record<string, Row>

export type ErrorName = keyof typeof apiErrors

interface Extra {
  readonly details?: unknown
  readonly info?: string
  readonly message?: string
  readonly headers?: Readonly<Record<string, string>>
}

export const errorResponse = (name: ErrorName, extra: Extra = {}): ApiResponse => {
  const row: Row = apiErrors[name]
  const { code, errno, error } = row
  const message = extra.message ?? row.message
  const body = {
    code,
    errno,
    error,
    ...(message === undefined ? {} : { message }),
    ...(extra.info === undefined ? {} : { info: extra.info }),
    ...(extra.details === undefined ? {} : { details: extra.details })
  }
  return { status: code, headers: extra.headers ?? {}, body, errno }
}

export const refuse = (name: ErrorName, extra: Extra = {}): Refused =>
  new Refused({ response: errorResponse(name, extra) })

/** One entry of an error's `details`. A null name means the whole location. */
export interface ErrorDetail {
  readonly location: "body" | "querystring" | "header" | "path"
  readonly name: string | null
  readonly description: string
}

const sortKey = ({ name }: ErrorDetail): string => name ?? "None"

/** The `message` of an error response: a sentence about its first detail. */
const messageOf = ({ description, location, name }: ErrorDetail): string => {
  if (name === null) return `${location}: ${description}`
  return description.includes(name) ? description : `${name} in ${location}: ${description}`
}

/** One error response for all errors of a request, sorted by name. */
export const refuseInvalid = (
  list: ReadonlyArray<ErrorDetail>,
  as?: "notAcceptable" | "unsupportedMediaType"
): Refused => {
  const details = [...list].sort((a, b) =>
    sortKey(a) < sortKey(b) ? -1 : sortKey(a) > sortKey(b) ? 1 : 0
  )
  const first = details[0]!
  return refuse(as ?? (first.location === "body" ? "invalidBody" : "invalidRequest"), {
    message: messageOf(first),
    details
  })
}

export const badId: ErrorDetail = { location: "path", name: null, description: "Invalid object id" }
