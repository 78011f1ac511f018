// Reads a stream up to its present end, in batches and without acknowledgements.
import type { Consumer, JetStreamClient, JsMsg, OrderedConsumerOptions } from "@nats-io/jetstream"

/** Messages requested at once. */
const batchMax = 500
const expiresMillis = 1_000
/** Requests in a row that bring nothing although the server says that there is more. */
const emptyMax = 5

/**
 * The messages that a stream keeps of a subject. `all`: every one. `last`: each replaces the one
 * before, so a subject that was not read yet may come later, with a newer message.
 */
export type Kept = "all" | "last"

/** Reads until the server has no more at the moment, or the batch is full. */
const readBatch = async (consumer: Consumer, max: number) => {
  const batch: Array<JsMsg> = []
  for await (const msg of await consumer.fetch({ max_messages: max, expires: expiresMillis })) {
    batch.push(msg)
    if (msg.info.pending === 0) break
  }
  return batch
}

/**
 * The messages that a consumer with these options finds now. Of a stream that keeps the `last` ones
 * no subject is missed, and one that changes meanwhile may come twice: reading ends when nothing is
 * unread, which a reader reaches even if writers never stop, as NATS delivers faster than it
 * stores. Of a stream that keeps `all`, reading ends after as many messages as there were at the
 * start. Rejects if the server stops early.
 */
export const readAll = async function* (
  js: JetStreamClient,
  stream: string,
  kept: Kept,
  options: Partial<OrderedConsumerOptions>
): AsyncGenerator<ReadonlyArray<JsMsg>, void> {
  const consumer = await js.consumers.get(stream, options)
  let left = (await consumer.info()).num_pending
  for (let empty = 0; left > 0; ) {
    // Asks for more than is left: then the end is seen at the first moment without a write.
    const batch = await readBatch(consumer, kept === "last" ? batchMax : Math.min(left, batchMax))
    empty = batch.length === 0 ? empty + 1 : 0
    if (empty === emptyMax) throw new Error("the server stopped answering")
    // A message that was removed unread does not come any more.
    const pending = batch.at(-1)?.info.pending ?? (await consumer.info()).num_pending
    left = kept === "last" ? pending : Math.min(left - batch.length, pending)
    if (batch.length > 0) yield batch
  }
  // If this fails, the server deletes the consumer later.
  await consumer.delete().catch(() => {})
}
