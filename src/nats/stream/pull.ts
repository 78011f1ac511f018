// Pulls messages of a durable consumer for many workers: one pull requests as many messages as
// there are idle workers. A pull for each worker would cost a subscription for each message.
import type { Consumer, JsMsg } from "@nats-io/jetstream"

/**
 * Milliseconds after which a pull ends. Until then the server delivers messages also to a process
 * that is cut off, and delivers each again only after the ack wait. With 30 s, a process at rest
 * takes 0.04 % of a core less (measured).
 */
const expiresMillis = 5_000

/**
 * How many messages a pull of a consumer may request: `wanted`, or fewer where NATS limits it
 * (`max_request_batch` of nats-server) and would refuse the pull. `isKnown`: false asks NATS.
 */
export const pullWithin = async (
  consumer: Pick<Consumer, "info">,
  wanted: number,
  isKnown = true
): Promise<number> => {
  const { max_batch = 0 } = (await consumer.info(isKnown)).config
  return max_batch > 0 ? Math.min(wanted, max_batch) : wanted
}

/** Called once: with a message, or with the error of the pull. */
export type Take = (result: { readonly msg: JsMsg } | { readonly failure: unknown }) => void

export interface Pulling {
  /** Waits for the next message. The returned function stops waiting. */
  readonly next: (take: Take) => () => void
  /** Ends after the open pull. The stream gets the messages of that pull back at once. */
  readonly stop: () => void
}

/** Pulls while a worker waits. At most one pull is open. `accepted`: called after each. */
export const makePulling = (consumer: Consumer, accepted: () => void): Pulling => {
  const waiting = new Set<Take>()
  let open = false
  let stopped = false
  /** False: the last pull failed, maybe as somebody changed how much it may request. */
  let isKnown = true

  const giveOut = (msg: JsMsg): void => {
    const [take] = waiting
    if (take === undefined || stopped) msg.nak()
    else {
      waiting.delete(take)
      take({ msg })
    }
  }

  const failAll = (failure: unknown): void => {
    isKnown = false
    const failed = [...waiting]
    waiting.clear()
    for (const take of failed) take({ failure })
  }

  const pull = async (): Promise<void> => {
    while (waiting.size > 0 && !stopped) {
      const max_messages = await pullWithin(consumer, waiting.size, isKnown)
      isKnown = true
      const messages = await consumer.fetch({ max_messages, expires: expiresMillis })
      for await (const msg of messages) giveOut(msg)
      accepted()
    }
  }

  const run = (): void => {
    pull()
      .catch(failAll)
      .finally(() => {
        open = false
        if (waiting.size > 0) begin()
      })
  }

  const begin = (): void => {
    if (open || stopped) return
    open = true
    // Workers that become idle in the same turn share a pull.
    setImmediate(run)
  }

  return {
    next: (take) => {
      waiting.add(take)
      begin()
      return () => waiting.delete(take)
    },
    stop: () => {
      stopped = true
    }
  }
}
