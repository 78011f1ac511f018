// How a stream is now: its age, its size, its last message.
import { Effect } from "effect"
import type { Nats } from "../connection/connection.ts"
import { codeOf, type Failure, nothing, streamNotFound } from "../connection/responses.ts"

/** The part of the server's answer to STREAM.INFO that is read here. */
export interface StreamInfo {
  /** When the stream was created, as the server writes it. */
  readonly created: string
  /** The time of the server that leads the stream, as it writes it. */
  readonly ts: string
  readonly config: { readonly max_bytes: number; readonly num_replicas: number }
  /** Absent: a server of its own. */
  readonly cluster?: { readonly leader?: string }
  readonly state: { readonly bytes: number; readonly last_seq: number }
}

/** Undefined: the server has no such stream. */
export const streamInfo = (
  { request }: Pick<Nats["Service"], "request">,
  stream: string,
  timeoutMillis: number
): Effect.Effect<StreamInfo | undefined, Failure> =>
  request<StreamInfo>(`STREAM.INFO.${stream}`, "", timeoutMillis).pipe(
    Effect.catchIf(
      (failure) => codeOf(failure) === streamNotFound,
      () => nothing
    )
  )
