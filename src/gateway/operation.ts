// The types of an endpoint and its operations: who may use an operation, how it reads a request,
// what it does, and how the API description presents it.
import type * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type { Settings } from "#config"
import type { IdentityUnavailable } from "#identity/errors.ts"
import type { Identity } from "#identity/identity.ts"
import type { Health } from "#monitoring/health.ts"
import type { JoinedChannels } from "#nats/broadcasts/joined.ts"
import type { BroadcastWatch } from "#nats/broadcasts/watch.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import type { Processes } from "#nats/connection/processes.ts"
import type { States } from "#nats/follower/states.ts"
import type { Watermark } from "#nats/follower/watermark.ts"
import type { Buckets } from "#nats/kv/bucket.ts"
import type { EventLog } from "#nats/stream/event-log.ts"
import type { Backlog } from "#nats/watch/backlog.ts"
import type { Space } from "#nats/watch/space.ts"
import type { ErrorDetail } from "./http/errors.ts"
import type { ApiRequest, ApiResponse, Call, Refused } from "./http/request.ts"
import type * as http from "./http/routing.ts"
import type { RequestRates } from "./quotas/requests.ts"
import type { GatewaySettings } from "./settings.ts"
import type { VapidPublicKeys } from "./vapid-public-keys.ts"

/** The services that an operation may use. */
export type Services =
  | Settings
  | GatewaySettings
  | VapidPublicKeys
  | Health
  | RequestRates
  | JoinedChannels
  | Identity
  | Backlog
  | Processes
  | BroadcastWatch
  | States
  | EventLog
  | Buckets
  | Watermark
  | Space

/** An operation in the API description; see openapi/openapi.ts. */
export interface Description {
  readonly summary: string
  /** Groups of query parameters and request headers, by their names in openapi/parameters.ts. */
  readonly parameters?: ReadonlyArray<string>
  readonly body?: Schema.Top
  readonly bodyExample?: unknown
  readonly bodyRequired?: boolean
  /** Successful statuses and the schemas of their bodies; null: no body. */
  readonly responses: Readonly<Record<number, Schema.Top | null>>
  /** The media type of a 200 that is text, besides JSON or instead of JSON. */
  readonly textType?: string
  /** Statuses of errors, besides those that follow from `access` and the other fields. */
  readonly errors?: ReadonlyArray<number>
}

/**
 * The whole API, for operations that need it: a batch runs other requests, the API description
 * lists all endpoints.
 */
export interface Gateway {
  readonly handleRequest: (request: ApiRequest) => Effect.Effect<ApiResponse, never, Services>
  readonly endpoints: ReadonlyArray<Endpoint>
}

export interface Operation<I> extends http.OperationRules {
  /**
   * `anyone`: without identification. `guest`: with or without credentials. `caller`: with valid
   * credentials of a user. `principal`: with any valid credentials, tokens of servers included;
   * the operation checks what the caller may. `publisher`: a caller who may publish to the channel
   * in the path, by the settings or by an operator's permission. `operator`: an operator. `viewer`:
   * such a publisher, or an operator. `users`: a caller with the right to name users, who must be a
   * publisher, too, where the path has a channel.
   */
  readonly access:
    | "anyone"
    | "guest"
    | "caller"
    | "principal"
    | "publisher"
    | "operator"
    | "viewer"
    | "users"
  /** Whether Accept must allow JSON. */
  readonly negotiates?: boolean
  /** When Content-Type must be JSON: always when it is given, or only with a body. */
  readonly takesJson?: "always" | "withBody"
  /**
   * Reads headers, query string and body, and adds every error to `errors`. The 400 lists all of
   * them. Unset: the operation needs none of these.
   */
  readonly read?: (call: Call, errors: Array<ErrorDetail>) => Effect.Effect<I, Refused, Services>
  readonly run: (
    input: I,
    call: Call,
    whole: Gateway
  ) => Effect.Effect<ApiResponse, Refused | NatsUnavailable | IdentityUnavailable, Services>
  readonly doc: Description
}

// biome-ignore lint/suspicious/noExplicitAny: `run` only gets what `read` of its operation returns
export type AnyOperation = Operation<any>

export type Endpoint = http.Endpoint<AnyOperation>

/** An endpoint that allows its operations, in this order, HEAD after GET, and OPTIONS. */
export const endpoint = (
  name: string,
  path: string,
  operations: Endpoint["operations"]
): Endpoint => {
  const methods = Object.keys(operations)
  const allow = methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]))
  return { name, path, allow: [...allow, "OPTIONS"], operations }
}
