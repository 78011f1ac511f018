// Reads streams and buckets past the service: messages in order from a sequence, and the last value
// of every key.
import { DeliverPolicy, type JsMsg } from "@nats-io/jetstream"
import type { RigClient } from "./client.ts"

/** Without progress for so long, reading has failed. */
const idleMillis = 30_000
/**
 * Without progress for so long, the last messages may have been deleted meanwhile. A client that
 * has missed some would have noticed by two heartbeats.
 */
const lookMillis = 12_000

/**
 * Calls `take` for each message of the subjects from `from` on, and returns the sequence to go on
 * from. A replica that is behind ends early: the rest comes with the next call. Rejects when the
 * stream cannot be read.
 */
export const readStream = async (
  { js, jsm }: RigClient,
  stream: string,
  subjects: ReadonlyArray<string>,
  from: number,
  take: (message: JsMsg) => void
): Promise<number> => {
  const { state } = await jsm.streams.info(stream)
  if (state.last_seq < from) return from
  const consumer = await js.consumers.get(stream, {
    filter_subjects: [...subjects],
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: from
  })
  let { num_pending: left } = await consumer.info()
  if (left === 0) return from
  const messages = await consumer.consume({ max_messages: 500, idle_heartbeat: 5_000 })
  const timer = setTimeout(() => messages.stop(), idleMillis)
  let next = from
  const look = setTimeout(async () => {
    const { num_pending } = await consumer.info().catch(() => ({ num_pending: left }))
    if (num_pending > 0) return
    left = 0
    messages.stop()
  }, lookMillis)
  try {
    for await (const message of messages) {
      timer.refresh()
      look.refresh()
      take(message)
      next = message.seq + 1
      left = message.info.pending
      if (left === 0) break
    }
    if (left === 0) return next
  } finally {
    clearTimeout(timer)
    clearTimeout(look)
    await messages.close()
    await consumer.delete().catch(() => false)
  }
  throw new Error(`${stream} could not be read: ${left} messages left`)
}

/** The last value of every key of a bucket's stream, by subject. Deleted keys are left out. */
export const readBucket = async (
  client: RigClient,
  bucket: string
): Promise<Map<string, string>> => {
  const values = new Map<string, string>()
  const prefix = `$KV.${bucket}.`
  await readStream(client, `KV_${bucket}`, [`${prefix}>`], 1, (message) => {
    const key = message.subject.slice(prefix.length)
    if (message.headers?.has("KV-Operation")) values.delete(key)
    else values.set(key, message.string())
  })
  return values
}
