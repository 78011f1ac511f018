// A request and an answer as the gateway sees them, apart from any HTTP library: the same for a request on a socket and one inside a batch.
import { Data, type Effect } from "effect"
import type { Settings } from "#config"
import type { Caller, Identity } from "#identity/identity.ts"
import type { Backlog } from "#nats/admin/backlog.ts"
import type { Space } from "#nats/admin/space.ts"
import type { Watermark } from "#nats/follower/watermark.ts"
import type { Buckets } from "#nats/kv/bucket.ts"
import type { EventLog } from "#nats/stream/event-log.ts"
import type { NewUsers } from "../quotas/new-users.ts"
import type { Health } from "../service/health.ts"
import type { GatewaySettings } from "../settings.ts"
import type { VapidPublicKeys } from "../subscriptions/vapid-public-keys.ts"

/** What answering a request may need. */
export type Services =
  | Settings
  | GatewaySettings
  | VapidPublicKeys
  | Health
  | NewUsers
  | Identity
  | Backlog
  | EventLog
  | Buckets
  | Watermark
  | Space

export interface ApiRequest {
  readonly method: string
  /** Path and query as they came, percent-encoded. */
  readonly target: string
  /** By lower-case names. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly hasBody: boolean
  /** The body; nothing is read before this is run. */
  readonly body: (
    bytesMax: number
  ) => Effect.Effect<Uint8Array, BodyTooLarge | BodyBroken | BodyCrowded>
  /**
   * Takes room for bytes of an answer that is made piece by piece, until the request is answered.
   * False: its client, or all together, have none left.
   */
  readonly reserveResponseBytes: (bytes: number) => boolean
  /** An entry of a batch. */
  readonly batched: boolean
  /** What the client is counted under: its IPv4 address or its IPv6 /64; "" when it has none. */
  readonly address: string
}

export class BodyTooLarge extends Data.TaggedError("BodyTooLarge") {}
/** It ended before its length. What came of it must not be taken for the whole: an empty broadcast would go out to everybody. */
export class BodyBroken extends Data.TaggedError("BodyBroken") {}

/** There is no room: its address, or all together, have too many bytes of bodies in hand. */
export class BodyCrowded extends Data.TaggedError("BodyCrowded")<{
  readonly by: "address" | "all"
}> {}

export interface ApiResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Sent as JSON; undefined: no body at all. */
  readonly body?: unknown
  /** JSON that is already written: sent as it is, instead of a body. */
  readonly jsonText?: string
  /** Sent as it is; its Content-Type stands in the headers. */
  readonly html?: string
  /** For the log; 0 when all is well. */
  readonly errno: number
  /** Of a batch, for the log. */
  readonly batchSize?: number
  /** A fault of ours or of the storage: a batch that meets it stops. */
  readonly aborts?: true
}

/** Ends a request with an answer from the table in faults.ts. */
export class Refused extends Data.TaggedError("Refused")<{ readonly response: ApiResponse }> {}

/** A request whose endpoint is known and whose caller may use it. */
export interface Call {
  readonly request: ApiRequest
  readonly caller: Caller | undefined
  /** Decoded segments of the path that stand for names. */
  readonly params: Readonly<Record<string, string>>
  /** The part of the target behind `?`. */
  readonly query: string
  /** Absolute URL of the API without trailing slash. */
  readonly rootUrl: string
}

export const ok = (
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
  status = 200
): ApiResponse => ({
  status,
  headers,
  body,
  errno: 0
})

/** JSON that is already written; undefined: the headers alone, for HEAD. */
export const jsonResponse = (
  jsonText: string | undefined,
  headers: Readonly<Record<string, string>> = {}
): ApiResponse => ({
  status: 200,
  headers: { ...headers, "Content-Type": "application/json; charset=UTF-8" },
  ...(jsonText === undefined ? {} : { jsonText }),
  errno: 0
})
