// Subscriptions of core NATS. If a callback throws, nats.js 3.4 stops reading, prints that outside
// the log, and the process is without NATS for as long as two pings take. So nobody else in this
// program subscribes, and what a callback throws ends here.
import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node"

export interface Listening {
  /** May have wildcards. */
  readonly subject: string
  /** Of all processes that listen with this name, one receives each message. */
  readonly queue?: string | undefined
  readonly receive: (msg: Msg) => void
  /** Called with what `receive` throws. */
  readonly failed: (cause: unknown) => void
}

/** Passes each message to `receive`. A subscription that is refused is reported with the status. */
export const listen = (
  nc: NatsConnection,
  { failed, queue, receive, subject }: Listening
): Subscription =>
  nc.subscribe(subject, {
    ...(queue === undefined ? {} : { queue }),
    callback: (error, msg) => {
      if (error !== null) return
      try {
        receive(msg)
      } catch (cause) {
        failed(cause)
      }
    }
  })
