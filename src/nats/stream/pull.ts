// Pulls messages of consumers: those of a durable one for many workers, and all that a stream has
// up to its present end, in batches and without acknowledgements.
import type { Consumer, JetStreamClient, JsMsg, OrderedConsumerOptions } from "@nats-io/jetstream"

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
type Take = (result: { readonly msg: JsMsg } | { readonly failure: unknown }) => void

export interface Pulling {
  /** Waits for the next message. The returned function stops waiting. */
  readonly next: (take: Take) => () => void
  /** Ends after the open pull. The stream gets the messages of that pull back at once. */
  readonly stop: () => void
}

/**
 * Pulls while a worker waits. At most one pull is open, which requests as many messages as there
 * are idle workers: a pull for each worker would cost a subscription for each message. `accepted`:
 * called after each pull.
 */
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

/** Messages requested at once. */
const batchMax = 500
const fetchMillis = 1_000
/** Requests in a row that bring nothing although the server says that there is more. */
const emptyMax = 5
/**
 * nats-server replaces a message before it counts the new one, up to as many as are written at a
 * time: `pending` 0 left one of ten subjects unread in 11 % of the readings beside a writer
 * (nats-server 2.15). So at `pending` 0 the leader is asked. If it has more messages, they are read
 * up to its last sequence, and it is asked again: at most so many times. Once was enough in 10,500
 * readings beside up to 256 writers.
 */
const lapsMax = 5

/**
 * The messages that a stream keeps of a subject. `all`: every one. `last`: each replaces the one
 * before, so a subject that was not read yet may come later, with a newer message.
 */
export type Kept = "all" | "last"

/** Opens a consumer with these options, and knows where its reading is and whether it has ended. */
const open = async (
  js: JetStreamClient,
  name: string,
  kept: Kept,
  options: Partial<OrderedConsumerOptions>
) => {
  const stream = await js.streams.get(name)
  const end = (await stream.info(true)).state.last_seq
  const consumer = await stream.getConsumer(options)
  const [filter = ">"] = [options.filter_subjects ?? []].flat()
  let seq = (options.opt_start_seq ?? 1) - 1
  let left = 0
  let laps = 0
  let lapEnd = 0
  /** Whether the server has more messages. Of `all` the consumer counts them. */
  const isUnread = async () => {
    if (kept === "all") {
      left = (await consumer.info()).num_pending
      return left > 0
    }
    const next = { seq: seq + 1, next_by_subj: filter }
    return (await stream.getMessage(next)) !== null
  }
  /** Takes the next message; whether it is the last one. */
  const isLast = async (msg: JsMsg) => {
    seq = msg.seq
    left = msg.info.pending
    if (kept === "all") return seq >= end || left === 0
    const isAtEnd = laps === 0 ? left === 0 : seq >= lapEnd
    if (!isAtEnd) return false
    if (laps === lapsMax || !(await isUnread())) return true
    laps += 1
    lapEnd = (await stream.info()).state.last_seq
    return false
  }
  /**
   * Messages to request. A request for more than there are makes the server look for them up to the
   * end of the stream, and writers wait: for 3 s in a stream of 12 million messages, with three
   * filters (nats-server 2.15).
   */
  const wanted = () => pullWithin(consumer, kept === "last" ? batchMax : Math.min(left, batchMax))
  return { consumer, isLast, isUnread, wanted }
}

/**
 * The messages that a consumer with these options finds now. Of a stream that keeps the `last` ones
 * no subject is missed, and one that changes meanwhile may come twice: reading ends when nothing is
 * unread, or, beside writers that never stop, soon after (see `lapsMax`). Of a stream that keeps
 * `all`, reading ends when nothing is unread, or with the first message that is not before the end
 * of the stream at the start. Rejects if the server stops early.
 */
export const readAll = async function* (
  js: JetStreamClient,
  name: string,
  kept: Kept,
  options: Partial<OrderedConsumerOptions>
): AsyncGenerator<ReadonlyArray<JsMsg>, void> {
  const { consumer, isLast, isUnread, wanted } = await open(js, name, kept, options)
  let isEnded = !(await isUnread())
  for (let empty = 0; !isEnded; ) {
    const batch: Array<JsMsg> = []
    const request = { max_messages: await wanted(), expires: fetchMillis }
    for await (const msg of await consumer.fetch(request)) {
      batch.push(msg)
      isEnded = await isLast(msg)
      if (isEnded) break
    }
    empty = batch.length === 0 ? empty + 1 : 0
    if (empty === emptyMax) throw new Error("the server stopped answering")
    // A message that was removed unread does not come any more.
    if (empty > 0) isEnded = !(await isUnread())
    if (batch.length > 0) yield batch
  }
  // If this fails, the server deletes the consumer later.
  await consumer.delete().catch(() => {})
}
