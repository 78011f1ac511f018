// Reads a stream up to its present end, in batches and without acknowledgements.
import type { JetStreamClient, JsMsg, OrderedConsumerOptions } from "@nats-io/jetstream"

/** Messages requested at once. */
const batchMax = 500
const expiresMillis = 1_000
/** Requests in a row that bring nothing although the server says that there is more. */
const emptyMax = 5
/**
 * nats-server replaces a message before it counts the new one, up to as many as are written at a
 * time: `pending` 0 left one of ten subjects unread in 11 % of the readings beside a writer
 * (nats-server 2.15). So where messages follow, they are read up to the last one that the leader
 * has then, so many times. Once was enough in 10,500 readings beside up to 256 writers.
 */
const lapsMax = 5

/**
 * The messages that a stream keeps of a subject. `all`: every one. `last`: each replaces the one
 * before, so a subject that was not read yet may come later, with a newer message.
 */
export type Kept = "all" | "last"

/** Where a reading is, and whether it has ended. */
const openPosition = async (
  js: JetStreamClient,
  name: string,
  kept: Kept,
  { filter_subjects = ">", opt_start_seq = 1 }: Partial<OrderedConsumerOptions>
) => {
  const stream = await js.streams.get(name)
  const end = (await stream.info(true)).state.last_seq
  const filters = [filter_subjects].flat()
  let seq = opt_start_seq - 1
  let laps = 0
  let lapEnd = 0
  /** Asks the leader: a consumer may be on a replica that is behind. */
  const isUnread = async () => {
    for (const filter of filters) {
      const next = { seq: seq + 1, next_by_subj: filter }
      const found = await stream.getMessage(next)
      if (found !== null && (kept === "last" || found.seq <= end)) return true
    }
    return false
  }
  /** Takes the next message; whether it is the last one. */
  const isLast = async (msg: JsMsg) => {
    seq = msg.seq
    if (kept === "all") return seq >= end || (msg.info.pending === 0 && !(await isUnread()))
    const isAtEnd = laps === 0 ? msg.info.pending === 0 : seq >= lapEnd
    if (!isAtEnd) return false
    if (laps === lapsMax || !(await isUnread())) return true
    laps += 1
    lapEnd = (await stream.info()).state.last_seq
    return false
  }
  return { stream, isUnread, isLast }
}

/**
 * The messages that a consumer with these options finds now. Of a stream that keeps the `last` ones
 * no subject is missed, and one that changes meanwhile may come twice: reading ends when nothing is
 * unread, or, beside writers that never stop, soon after (see `lapsMax`). Of a stream that keeps
 * `all`, reading ends with the first message that is not before the end of the stream at the start.
 * Rejects if the server stops early.
 */
export const readAll = async function* (
  js: JetStreamClient,
  name: string,
  kept: Kept,
  options: Partial<OrderedConsumerOptions>
): AsyncGenerator<ReadonlyArray<JsMsg>, void> {
  const { isLast, isUnread, stream } = await openPosition(js, name, kept, options)
  if (!(await isUnread())) return
  const consumer = await stream.getConsumer(options)
  for (let empty = 0, isEnded = false; !isEnded; ) {
    const batch: Array<JsMsg> = []
    const request = { max_messages: batchMax, expires: expiresMillis }
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
