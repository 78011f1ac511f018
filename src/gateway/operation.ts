// What one method of one endpoint is: who may use it, what it takes, what it does, and how it is described to clients.
import type { Effect, Schema } from "effect"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import type { ErrorDetail } from "./http/errors.ts"
import type { ApiRequest, ApiResponse, Call, Refused, Services } from "./http/request.ts"

export type Method = "GET" | "POST" | "PUT" | "DELETE"

/** For the API description; see openapi.ts. */
export interface Description {
  readonly summary: string
  /** Query parameters and request headers, by their keys in openapi-parameters.ts. */
  readonly parameters?: ReadonlyArray<string>
  readonly body?: Schema.Top
  readonly bodyExample?: unknown
  readonly bodyRequired?: boolean
  /** Successful statuses and what they carry; null: nothing. */
  readonly responses: Readonly<Record<number, Schema.Top | null>>
  /** Media type of a 200 that is text: beside JSON, or instead of it. */
  readonly textType?: string
  /** Statuses of faults beside those that every endpoint of its access can give. */
  readonly errors?: ReadonlyArray<number>
}

/** What an operation may know of the whole: a batch answers other requests, the description tells of every endpoint. */
export interface Gateway {
  readonly handleRequest: (request: ApiRequest) => Effect.Effect<ApiResponse, never, Services>
  readonly endpoints: ReadonlyArray<Endpoint>
}

export interface Operation<I> {
  /** `guest`: anyone, by name when there is one. `publisher`: a caller whom the settings name, or an operator for the channel in the path. */
  readonly access: "anyone" | "guest" | "caller" | "publisher"
  /** Whether Accept must allow JSON. */
  readonly negotiates?: boolean
  /** When Content-Type must be JSON: always when it is given, or only with a body. */
  readonly takesJson?: "always" | "withBody"
  /**
   * `open`: pages of other sites may send it as they like, whatever their origin. For a login that
   * comes back as a form post, redirects of a login, and scripts that other origins load. Unset: a
   * request that changes something is guarded; see cross-site.ts.
   */
  readonly crossSite?: "open"
  /** Response headers that scripts may read, beside the base ones. */
  readonly exposes?: ReadonlyArray<string>
  /** Reads header, query string and body; every fault goes into `faults`, and the request is refused with all of them. */
  readonly read: (call: Call, errors: Array<ErrorDetail>) => Effect.Effect<I, Refused, Services>
  readonly run: (
    input: I,
    call: Call,
    whole: Gateway
  ) => Effect.Effect<ApiResponse, Refused | NatsUnavailable, Services>
  readonly doc: Description
}

// biome-ignore lint/suspicious/noExplicitAny: what `read` returns is only ever given to `run` of the same operation
export type AnyOperation = Operation<any>

export interface Endpoint {
  readonly name: string
  /** Below the version prefix; `:name` stands for one segment. */
  readonly path: string
  /** The order in which Allow names the methods. */
  readonly allow: ReadonlyArray<string>
  readonly operations: Readonly<Partial<Record<Method, AnyOperation>>>
}

/** HEAD is GET without the body. */
export const operationOf = (endpoint: Endpoint, method: string): AnyOperation | undefined => {
  const { operations } = endpoint
  const name = method === "HEAD" ? "GET" : method
  return Object.hasOwn(operations, name) ? operations[name as Method] : undefined
}
