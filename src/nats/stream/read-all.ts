// Reads a stream from somewhere to its end as it is now, in batches: nothing is followed, and nothing acknowledged.
import type { JetStreamClient, JsMsg, OrderedConsumerOptions } from "@nats-io/jetstream"

/** Messages asked for at once. */
const batchMax = 500
const expiresMillis = 5_000

/** What a consumer with these options finds now. Rejects when the server stops answering half-way. */
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
  // The server forgets it by itself, later.
  await consumer.delete().catch(() => {})
}
