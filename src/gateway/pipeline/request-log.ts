// Writes one log line per request. Query strings may contain endpoints, tokens and mail addresses:
// the line shows only the values of harmless parameters.
import { randomUUID } from "node:crypto"
import * as Effect from "effect/Effect"
import type { Caller } from "#identity/identity.ts"
import type { UserToken } from "#streams/tokens.ts"
import { cutToPrinted } from "#telemetry/redaction.ts"
import { apiErrors } from "../http/error-table.ts"
import type { ApiRequest } from "../http/request.ts"
import type { ApiResponse } from "../http/response.ts"

/** Parameters of lists with values as the API reads them: numbers and names of fields. */
const harmless =
  /^(_limit|_since|_before|_to|_sort|_fields|last_modified)=(?:[\w.,+-]|%22|%2C){0,40}$/
/** Names of parameters. A text of another form may be a secret that a client put there. */
const plainName = /^[a-z_]{1,40}$/

const redactPair = (pair: string): string => {
  if (pair === "" || harmless.test(pair)) return pair
  const [name = "", ...value] = pair.split("=")
  return value.length > 0 && plainName.test(name) ? `${name}=…` : "…"
}

const redact = (query: string): string => query.split("&").map(redactPair).join("&")

/** The id of a user that ends in the HMAC of a mail address or of a name. */
const hmacId = /^[\w.-]+(?::|%3A)(?:@|%40)?[0-9a-f]{64}$/i
/** An at sign. A client may have encoded it several times. */
const atSign = /@|%(?:25)*40/

/** Whether a segment of a path holds no mail address. */
const isHarmless = (segment: string, i: number, all: ReadonlyArray<string>): boolean =>
  hmacId.test(segment) || !(/^(?:users|members)$/.test(all[i - 1] ?? "") || atSign.test(segment))

/** A path without the ids of users that may hold a mail address. */
const withoutAddresses = (path: string): string =>
  path
    .split("/")
    .map((segment, i, all) => (isHarmless(segment, i, all) ? segment : "…"))
    .join("/")

/** Notes of the pipeline about a request, for its log line. */
export interface Trace {
  /** Milliseconds since the epoch. */
  readonly began: number
  caller: Caller | undefined
  /** The pseudonym of the person whom an operator looks at or changes. */
  person: UserToken | undefined
}

/** Requests that load balancers and Prometheus make every few seconds. */
const probes: ReadonlySet<string> = new Set(["/__heartbeat__", "/__lbheartbeat__", "/__metrics__"])

/**
 * Whether a line is for debugging only: all with BELLCAST_LOG_REQUESTS=false, else probes. A line
 * that says what an operator did or looked at of a person never is.
 */
export const isQuiet = (
  isLogged: boolean,
  endpoint: string | undefined,
  { status }: Pick<ApiResponse, "status">,
  { person }: Pick<Trace, "person">
): boolean =>
  person === undefined &&
  (!isLogged || (status < 400 && endpoint !== undefined && probes.has(endpoint)))

/** Characters of the path, and of the query, in a line. */
const targetCharsMax = 1_024
/** Characters of a header in a line. Anybody may send 16 KiB of them with each request. */
const headerCharsMax = 200
const ridCharsMax = 128

const headerOf = (value: string | undefined, charsMax = headerCharsMax): string | undefined =>
  value === undefined ? undefined : cutToPrinted(value, charsMax)

/** Writes the line, at debug if it is quiet. */
export const logRequest = (
  request: ApiRequest,
  response: ApiResponse,
  { caller, person }: Trace,
  millis: number,
  quiet: boolean
): Effect.Effect<void> => {
  const [path = "", ...query] = request.target.split("?")
  const { headers } = request
  const write = quiet ? Effect.logDebug : Effect.logInfo
  return write(request.batched ? "subrequest.summary" : "request.summary", {
    method: request.method,
    path: cutToPrinted(withoutAddresses(path), targetCharsMax),
    querystring: cutToPrinted(redact(query.join("?")), targetCharsMax),
    agent: headerOf(headers["user-agent"]),
    lang: headerOf(headers["accept-language"]),
    // The id of a load balancer links this line to the balancer's log. Otherwise make one.
    rid: headerOf(headers["x-request-id"], ridCharsMax) ?? randomUUID(),
    uid: caller?.id,
    authn_type: caller?.policy,
    ...(response.broadcast === undefined ? {} : { broadcast: response.broadcast }),
    ...(person === undefined ? {} : { person }),
    ...(response.batchSize === undefined ? {} : { batch_size: response.batchSize }),
    errno: response.error === undefined ? 0 : apiErrors[response.error].errno,
    error_code: response.error,
    code: response.status,
    t: millis
  })
}
