// The messages of a stream that arrived for a follower and wait for the next batch.
import { type ConsumerMessages, DeliverPolicy, type JetStreamClient } from "@nats-io/jetstream"
import * as Effect from "effect/Effect"
import { streams } from "#streams/index.ts"
import { attempt } from "../connection/errors.ts"
import type { StreamKey } from "../stream/append.ts"
import { pullWithin } from "../stream/pull.ts"
import { type Stored, storedOfGiven } from "../stream/stored.ts"

/** A batch is what has arrived, at most this many messages. */
export const batchMax = 256
/**
 * The client stops reading above this many, so that it reads no faster than the follower applies.
 */
const waitingMax = batchMax * 2
const expiresMillis = 5_000

export interface Inbox {
  readonly waiting: Array<Stored>
  /** The stream ended: no message will follow. */
  ended: boolean
  /** Reports an arrival or the end. */
  wake: () => void
  /** Lets the client read on. */
  goOn: () => void
}

const pump = async (messages: ConsumerMessages, inbox: Inbox): Promise<void> => {
  for await (const msg of messages) {
    inbox.waiting.push(storedOfGiven(msg))
    inbox.wake()
    if (inbox.waiting.length >= waitingMax)
      await new Promise<void>((resolve) => {
        inbox.goOn = resolve
      })
  }
}

/** The messages of a stream that somebody follows. */
interface Followed {
  readonly stream: StreamKey
  readonly filters: ReadonlyArray<string>
}

const consume = async (js: JetStreamClient, { filters, stream }: Followed, from: number) => {
  const consumer = await js.consumers.get(streams[stream].name, {
    filter_subjects: [...filters],
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: from + 1
  })
  const max_messages = await pullWithin(consumer, waitingMax)
  return consumer.consume({ max_messages, expires: expiresMillis })
}

/** Reads the messages after `from`, until the scope closes. `name`: of the reader, for errors. */
export const openInbox = Effect.fnUntraced(function* (
  js: JetStreamClient,
  name: string,
  followed: Followed,
  from: number
) {
  const messages = yield* Effect.acquireRelease(
    attempt(`follow ${name}`, () => consume(js, followed, from)),
    (messages) =>
      Effect.promise(() => messages.close()).pipe(Effect.timeoutOption("1 second"), Effect.ignore)
  )
  const inbox: Inbox = { waiting: [], ended: false, wake: () => {}, goOn: () => {} }
  pump(messages, inbox)
    .catch(() => {})
    .finally(() => {
      inbox.ended = true
      inbox.wake()
    })
  return inbox
})

/**
 * Returns when a message waits or the stream ended. Messages that arrived in one packet make one
 * batch: each batch costs an announcement, and 20,000 of them would take seconds.
 */
export const arrival = (inbox: Inbox) =>
  Effect.callback<void>((resume) => {
    inbox.wake = () => {
      inbox.wake = () => {}
      setImmediate(resume, Effect.void)
    }
    if (inbox.waiting.length > 0 || inbox.ended) inbox.wake()
  })

/** Takes the next batch. */
export const takeBatch = (inbox: Inbox): ReadonlyArray<Stored> => {
  const batch = inbox.waiting.splice(0, batchMax)
  inbox.goOn()
  return batch
}
