// Metrics of HTTP requests, of their credentials, and of the limits on connections.
import { gauge as readGauge } from "./process-metrics.ts"
import { counter, gauge, histogram } from "./series.ts"

const requestSecondsBounds = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10
]

const countRequest = counter(
  "bellcast_http_requests_total",
  "HTTP requests by method, endpoint and status; those inside a batch count one by one as well",
  { method: "open", endpoint: "open", status: "open" }
)
const classes = ["1xx", "2xx", "3xx", "4xx", "5xx"] as const
const countResponse = counter(
  "bellcast_http_responses_total",
  "Responses to HTTP requests by the class of their status, for alerts: shown from 0 on",
  { class: classes }
)
const observeRequest = histogram(
  "bellcast_http_request_duration_seconds",
  "How long HTTP requests take",
  requestSecondsBounds
)

const countTurnedAway = counter(
  "bellcast_http_turned_away_total",
  "Connections and requests turned away, by the bound that they met: connections, " +
    "address, pipelined, unread",
  { bound: ["connections", "address", "pipelined", "unread"] }
)

const showEventStreams = gauge("bellcast_event_streams", "Open streams of events")

const countAuthentication = counter(
  "bellcast_authentications_total",
  "Credentials that a policy looked at, by policy and result: known, invalid, unavailable",
  { policy: "given", result: ["known", "invalid", "unavailable"] }
)

const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])

/**
 * Limits that a client can meet: connections of the process, connections of one address, pipelined
 * requests on one connection, and bytes of responses that the client does not read.
 */
export type HttpBound = "connections" | "address" | "pipelined" | "unread"

/** Counts a connection or request that met a limit. */
export const httpTurnedAway = (bound: HttpBound): void => countTurnedAway({ bound }, 1)

/** Shows how many streams of events are open. */
export const eventStreamsOpen = (count: number): void => showEventStreams({}, count)

/**
 * Counts a request and its duration. `endpoint` is the path's template, never the path itself.
 * Methods that it does not have count as one, so that clients cannot choose how many series there
 * are.
 */
export const requestAnswered = (
  method: string,
  endpoint: string,
  status: number,
  millis: number
): void => {
  const named = methods.has(method) && status !== 405 ? method : "other"
  countRequest({ method: named, endpoint, status: String(status) }, 1)
  const of = classes[Math.floor(status / 100) - 1]
  if (of !== undefined) countResponse({ class: of }, 1)
  observeRequest({ method: named, endpoint }, Math.max(0, millis) / 1000)
}

/**
 * The verdict of a policy on credentials. `unavailable`: the policy had no verdict, or refused one
 * because the address had sent too many wrong credentials.
 */
export type AuthenticationResult = "known" | "invalid" | "unavailable"

/** Counts credentials that a policy looked at. `policy`: its name in the settings. */
export const authenticated = (policy: string, result: AuthenticationResult): void =>
  countAuthentication({ policy, result }, 1)

/** Shows the counts of these policies from 0 on. */
export const authenticationsOf = (policies: ReadonlyArray<string>): void =>
  countAuthentication.fromZero({ policy: policies })

const showExpiry = (token: string, seconds: number) =>
  readGauge(
    "bellcast_token_expires_timestamp_seconds",
    "When a token of a server ends that may be used now, in seconds since 1970",
    () => seconds,
    { token }
  )
let expiries: ReadonlyArray<ReturnType<typeof showExpiry>> = []

/** Shows when each of these tokens ends, and no other. `expiresAt`: in milliseconds since 1970. */
export const showTokens = (
  tokens: ReadonlyArray<{ readonly name: string; readonly expiresAt: number }>
): void => {
  for (const { remove } of expiries) remove()
  expiries = tokens.map(({ expiresAt, name }) => showExpiry(name, expiresAt / 1000))
}
