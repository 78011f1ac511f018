// The types of an endpoint and its operations: who may use an operation, how it reads a request,
// what it does, and how the API description presents it.
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type { IdentityUnavailable } from "#identity/verdict.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import type { ApiRequest, Call } from "./http/request.ts"
import type { ApiResponse, ErrorDetail, Refused } from "./http/response.ts"
import type * as http from "./http/routing.ts"

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

/** `I`: what `read` makes of a request. `R`: the services that the operation needs. */
export interface Operation<I, R> extends http.OperationRules {
  /**
   * `anyone`: without identification. `guest`: with or without credentials. `caller`: with valid
   * credentials of a user. `principal`: with any valid credentials, tokens of servers included;
   * the operation checks what the caller may. `publisher`: a caller who may publish to the channel
   * in the path, by the settings or by an operator's permission. `operator`: an operator. `viewer`:
   * such a publisher, or an operator. `users`: a caller with the right to name users, who must be a
   * publisher, too, where the path has a channel. `eraser`: an operator, or such a caller.
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
    | "eraser"
  /** Whether Accept must allow JSON. */
  readonly negotiates?: boolean
  /** When Content-Type must be JSON: always when it is given, or only with a body. */
  readonly takesJson?: "always" | "withBody"
  /**
   * Reads headers, query string and body, and adds every error to `errors`. The 400 lists all of
   * them. Unset: the operation needs none of these.
   */
  readonly read?: Read<I, R>
  readonly run: Run<I, R>
  readonly doc: Description
}

type Read<I, R> = (call: Call, errors: Array<ErrorDetail>) => Effect.Effect<I, Refused, R>

type Run<I, R> = (
  input: I,
  call: Call
) => Effect.Effect<ApiResponse, Refused | NatsUnavailable | IdentityUnavailable, R>

/** An operation, with the services that its two functions need together. */
export const operation = <I = void, ForRead = never, ForRun = never>(
  given: Omit<Operation<I, never>, "read" | "run"> & {
    readonly read?: Read<I, ForRead>
    readonly run: Run<NoInfer<I>, ForRun>
  }
): Operation<I, ForRead | ForRun> => given

// biome-ignore lint/suspicious/noExplicitAny: `run` only gets what `read` of its operation returns
export type AnyOperation<R = unknown> = Operation<any, R>

export type Endpoint<R = unknown> = http.Endpoint<AnyOperation<R>>

/** The services that an endpoint, or one of several, needs. */
export type NeedsOf<E> = E extends Endpoint<infer R> ? R : never

/**
 * An endpoint that allows its operations, in this order, HEAD after GET, and OPTIONS. It needs the
 * services of each.
 */
export const endpoint = <Get = never, Post = never, Put = never, Patch = never, Delete = never>(
  name: string,
  path: string,
  operations: {
    readonly GET?: AnyOperation<Get>
    readonly POST?: AnyOperation<Post>
    readonly PUT?: AnyOperation<Put>
    readonly PATCH?: AnyOperation<Patch>
    readonly DELETE?: AnyOperation<Delete>
  }
): Endpoint<Get | Post | Put | Patch | Delete> => {
  const methods = Object.keys(operations)
  const allow = methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]))
  return { name, path, allow: [...allow, "OPTIONS"], operations }
}

/**
 * The whole API, for operations that need it: a batch runs other requests, the API description
 * lists all endpoints.
 */
export class Gateway extends Context.Service<
  Gateway,
  {
    readonly handleRequest: (request: ApiRequest) => Effect.Effect<ApiResponse>
    readonly endpoints: ReadonlyArray<Endpoint>
  }
>()("bellcast/gateway/Gateway") {}
