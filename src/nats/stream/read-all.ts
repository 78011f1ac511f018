// Reads a stream up to its present end, in batches and without acknowledgements.
import type { JetStreamClient, JsMsg, OrderedConsumerOptions } from "@nats-io/jetstream"

/** Messages requested at once. */
const batchMax = 500
const expiresMillis = 5_000

/** The messages that a consumer with these options finds now. Rejects if the server stops early. */
export const readAll = async function* (
  js: JetStreamClient,
  stream: string,
  options: Partial<OrderedConsumerOptions>
): AsyncGenerator<ReadonlyArray<JsMsg>, void> {
  const consumer = await js.consumers.get(stream, options)
  let remaining = (await consumer.info()).num_pending
  while (remaining > 0) {
    const batch: Array<JsMsg> = []
    for await (const msg of await consumer.fetch({
      max_messages: Math.min(remaining, batchMax),
      expires: expiresMillis
    }))
      batch.push(msg)
    if (batch.length === 0) throw new Error("the server stopped answering")
    remaining -= batch.length
    yield batch
  }
  // If this fails, the server deletes the consumer later.
  await consumer.delete().catch(() => {})
}
