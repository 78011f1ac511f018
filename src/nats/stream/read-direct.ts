// Reads a stream without a consumer, for people who may not create one: whoever creates a consumer
// chooses the subject to which it delivers. Any replica responds, so the last messages may be
// missing for a moment.
import type { JetStreamManager, StoredMsg } from "@nats-io/jetstream"

/** Messages requested at once. */
const batchMax = 500

/** Status of a response without messages. nats.js throws it as an error. */
const noMessages = 404

interface Query {
  readonly seq: number
  readonly next_by_subj: string
  readonly batch: number
}

const request = async (jsm: JetStreamManager, stream: string, query: Query) => {
  const batch: Array<StoredMsg> = []
  try {
    for await (const msg of await jsm.direct.getBatch(stream, query)) batch.push(msg)
  } catch (error) {
    if ((error as { readonly code?: unknown }).code !== noMessages) throw error
  }
  return batch
}

/** The messages that a filter matches, in order, up to the present end of the stream. */
export const readDirect = async function* (
  jsm: JetStreamManager,
  stream: string,
  filter: string
): AsyncGenerator<ReadonlyArray<StoredMsg>, void> {
  let seq = 1
  while (true) {
    const batch = await request(jsm, stream, { seq, next_by_subj: filter, batch: batchMax })
    if (batch.length === 0) return
    yield batch
    seq = batch.at(-1)!.seq + 1
  }
}

/** Number of messages from a sequence on that a filter matches. */
export const countDirect = async (
  jsm: JetStreamManager,
  stream: string,
  filter: string,
  seq: number
): Promise<number> => {
  const [first] = await request(jsm, stream, { seq, next_by_subj: filter, batch: 1 })
  return first === undefined ? 0 : first.pending + 1
}
