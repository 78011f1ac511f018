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

/**
 * Whether a response would be stored: NATS lets a client name any reply subject, also those that
 * only the service may publish.
 */
const isStored = (reply = ""): boolean => reply.startsWith("$") || reply.startsWith("bellcast.")

/**
 * Passes each message to `receive`, but for those that ask for a response on a subject of the
 * service's. A subscription that is refused is reported with the status.
 */
export const listen = (
  nc: NatsConnection,
  { failed, queue, receive, subject }: Listening
): Subscription =>
  nc.subscribe(subject, {
    ...(queue === undefined ? {} : { queue }),
    callback: (error, msg) => {
      if (error !== null || isStored(msg.reply)) return
      try {
        receive(msg)
      } catch (cause) {
        failed(cause)
      }
    }
  })
