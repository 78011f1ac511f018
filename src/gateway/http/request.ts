// A request and a response of the API, independent of Node.js: the same types serve for a request
// on a socket and for an entry of a batch.
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { Caller, User } from "#identity/identity.ts"
import type { UserToken } from "#streams/tokens.ts"
import type { ErrorCode } from "./error-table.ts"

export interface ApiRequest {
  readonly method: string
  /** Path and query as received, percent-encoded. */
  readonly target: string
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly hasBody: boolean
  /** Reads the body. Nothing reads from the socket before this effect runs. */
  readonly body: (
    bytesMax: number
  ) => Effect.Effect<Uint8Array, BodyTooLarge | BodyBroken | BodyCrowded>
  /**
   * Reserves memory for a part of a response, until the response is sent. False when the client's
   * address, or all addresses together, have reached their limit.
   */
  readonly reserveResponseBytes: (bytes: number) => boolean
  /** Whether the request is an entry of a batch. */
  readonly batched: boolean
  /** The key of limits per address: the IPv4 address or the IPv6 /64; "" without an address. */
  readonly address: string
  /** The headers that arrived on the connection: those of the batch, if this is an entry of one. */
  readonly received: Readonly<Record<string, string | undefined>>
  /** Whether the peer of the connection is a trusted proxy. */
  readonly fromTrustedProxy: boolean
  /** The port of this machine at which the connection arrived. */
  readonly port: number
  /** The source that sends the request on NATS, which binds it to its name; unset over HTTP. */
  readonly source?: string
  /** The refusal of a request on NATS whose body does not make a path. */
  readonly refusal?: Refused
  /** Whether a header arrived more than once on the connection. */
  readonly isRepeated: (header: string) => boolean
}

export class BodyTooLarge extends Data.TaggedError("BodyTooLarge") {}

/**
 * The body ended before its announced length. The part that arrived must not be used: an empty body
 * would publish an empty broadcast.
 */
export class BodyBroken extends Data.TaggedError("BodyBroken") {}

/** The bodies in memory, of one address or of all together, have reached their limit. */
export class BodyCrowded extends Data.TaggedError("BodyCrowded")<{
  readonly by: "address" | "all"
}> {}

/** Sends text of a stream. Returns when the client, or the kernel for it, has taken the text. */
export type Write = (text: string) => Effect.Effect<void>

export interface ApiResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Sent as JSON; undefined: no body. */
  readonly body?: unknown
  /** JSON text that is sent instead of `body`. */
  readonly jsonText?: string
  /** Text that is sent instead of `body`; `headers` hold its Content-Type. */
  readonly text?: string
  /** Bytes that are sent instead of `text`; `headers` hold their Content-Encoding. */
  readonly encoded?: Uint8Array
  /** Sends the body piece by piece instead, and returns at its end. */
  readonly events?: (write: Write) => Effect.Effect<void>
  /** Unset on success. */
  readonly error?: ErrorCode
  /** The id of a broadcast that was accepted, for the log. */
  readonly broadcast?: number
  /** The number of entries of a batch, for the log. */
  readonly batchSize?: number
  /** An error of the server or of the storage: a batch stops at this response. */
  readonly aborts?: true
}

/** Ends a request with a response, mostly an error from error-table.ts. */
export class Refused extends Data.TaggedError("Refused")<{ readonly response: ApiResponse }> {}

/** A request whose endpoint is known and whose caller is authorised. */
export interface Call {
  readonly request: ApiRequest
  readonly caller: Caller | undefined
  /** The user of the subscriptions and registrations in question: the caller or a named user. */
  readonly user: User | undefined
  /** The name of the endpoint. */
  readonly endpoint: string
  /** The decoded segments of the path that its pattern names. */
  readonly params: Readonly<Record<string, string>>
  /** The part of the target after `?`. */
  readonly query: string
  /** Absolute URL of the API without trailing slash. */
  readonly rootUrl: string
  /** Lets the log name whom the request of an operator is about, also if it fails. */
  readonly isAbout: (person: UserToken) => void
}

export const ok = (
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
  status = 200
): ApiResponse => ({
  status,
  headers,
  body
})

/** A response of JSON text; undefined: only headers, for HEAD. */
export const jsonResponse = (
  jsonText: string | undefined,
  headers: Readonly<Record<string, string>> = {}
): ApiResponse => ({
  status: 200,
  headers: { ...headers, "Content-Type": "application/json; charset=UTF-8" },
  ...(jsonText === undefined ? {} : { jsonText })
})
