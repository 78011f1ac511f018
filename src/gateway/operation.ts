// The types of an endpoint and its operations: who may use an operation, how it reads a request,
// what it does, and how the API description presents it.
import type { Effect, Schema } from "effect"
import type { IdentityUnavailable } from "#identity/policy.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import type { ErrorDetail } from "./http/errors.ts"
import type { ApiRequest, ApiResponse, Call, Refused, Services } from "./http/request.ts"

export type Method = "GET" | "POST" | "PUT" | "DELETE"

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

export interface Operation<I> {
  /**
   * `anyone`: without identification. `guest`: with or without credentials. `caller`: with valid
   * credentials. `publisher`: a caller who may publish to the channel in the path, by the settings
   * or by an operator's permission.
   */
  readonly access: "anyone" | "guest" | "caller" | "publisher"
  /** Whether Accept must allow JSON. */
  readonly negotiates?: boolean
  /** When Content-Type must be JSON: always when it is given, or only with a body. */
  readonly takesJson?: "always" | "withBody"
  /**
   * `open`: pages of any origin may send this request. For logins that return as a form post or a
   * redirect, and for scripts that other origins load. Unset: cross-site.ts checks requests that
   * change data.
   */
  readonly crossSite?: "open"
  /** Response headers that scripts may read, besides those of every response. */
  readonly exposes?: ReadonlyArray<string>
  /**
   * Reads headers, query string and body, and adds every error to `errors`. The 400 lists all of
   * them.
   */
  readonly read: (call: Call, errors: Array<ErrorDetail>) => Effect.Effect<I, Refused, Services>
  readonly run: (
    input: I,
    call: Call,
    whole: Gateway
  ) => Effect.Effect<ApiResponse, Refused | NatsUnavailable | IdentityUnavailable, Services>
  readonly doc: Description
}

// biome-ignore lint/suspicious/noExplicitAny: `run` only gets what `read` of its operation returns
export type AnyOperation = Operation<any>

export interface Endpoint {
  readonly name: string
  /** The path after the version; `:name` stands for one segment. */
  readonly path: string
  /** The methods in the order of the Allow header. */
  readonly allow: ReadonlyArray<string>
  readonly operations: Readonly<Partial<Record<Method, AnyOperation>>>
}

/** The operation of a method. HEAD runs the operation of GET. */
export const operationOf = (endpoint: Endpoint, method: string): AnyOperation | undefined => {
  const { operations } = endpoint
  const name = method === "HEAD" ? "GET" : method
  return Object.hasOwn(operations, name) ? operations[name as Method] : undefined
}
