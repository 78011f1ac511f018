// Group commit: messages for one stream that wait at the same time are stored as one atomic batch
// (ADR-50). With `sync_interval: always`, a stream without replicas waits for its disk once for
// each message, but about five times for a batch of any size. Measured with conditional messages of
// 0.4 KB, single and in batches: 5,200/s and 13,000/s with 50 at once, 5,300/s and 30,000/s with
// 200 at once. Batches take half the CPU.
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { codeOf, type Failure } from "./errors.ts"
import type { PubAck, Received, Requests } from "./request.ts"

/** A message to store in a stream. */
interface Message {
  readonly subject: string
  readonly payload: string
  readonly headers: Readonly<Record<string, string>>
}

/**
 * Stores a message and returns the server's acknowledgement. Without a response `timeoutMillis`
 * after it was sent, the message may be stored or not.
 */
export type Store = (
  stream: string,
  message: Message,
  timeoutMillis: number
) => Effect.Effect<PubAck, Failure>

/** nats-server 2.15. Older servers wait for the disk after each message of a batch too. */
export const groupCommitApiLevel = 5

/**
 * `name` tells the batches of this connection from those of others. Unless `enabled`, each message
 * is sent at once.
 */
export const makeGroupCommit = (
  requests: Pick<Requests, "publish" | "send">,
  name: string,
  enabled: boolean,
  silences: Silences
): Store => {
  const queues = new Map<string, StreamQueue>()
  let lastBatch = 0
  const options = { requests, batches: enabled, nextBatchId: () => `${name}.${++lastBatch}` }

  const queueOf = (stream: string): StreamQueue => {
    const queue = queues.get(stream) ?? new StreamQueue(options)
    queues.set(stream, queue)
    return queue
  }

  return (stream, { headers: given, payload, subject }, timeoutMillis) =>
    Effect.callback<PubAck, Failure>((resume) => {
      const message: Waiting = {
        subject,
        payload,
        headers: new Map(Object.entries(given)),
        timeoutMillis,
        received: (result) => {
          const isAnswered = Result.isSuccess(result) || codeOf(result.failure) !== undefined
          silences.note(stream, isAnswered, message.since)
          resume(Effect.fromResult(result))
        },
        since: performance.now(),
        cancelled: false
      }
      const queue = queueOf(stream)
      queue.add(message)
      return Effect.sync(() => queue.cancel(message))
    })
}

/**
 * A batch costs as much as about 16 single messages. Up to 16 messages go out one by one; others
 * wait meanwhile and make a batch.
 */
const sizeMin = 16
/** nats-server takes 1,000 messages in a batch, unless its limit is set lower. */
const sizeMax = 500
/** The code of a batch that is larger. The description ends with the limit. */
const tooLarge = 10199
/** Characters of the payloads of a batch. A replicated stream proposes a batch at once. */
const charactersMax = 2 * 1024 ** 2
/**
 * If the server refuses one message of a batch, it refuses the batch, which costs a few
 * milliseconds. After that no batches for 100 ms.
 */
const pauseMillis = 100
/** Upper bound of the batching delay, also when a response is missing. */
const delayMillisMax = 250

const expectation = "Nats-Expected-Last-Subject-Sequence"
const batchId = "Nats-Batch-Id"
const batchSequence = "Nats-Batch-Sequence"
const batchCommit = "Nats-Batch-Commit"

interface Waiting {
  readonly subject: string
  readonly payload: string
  readonly headers: Map<string, string>
  readonly timeoutMillis: number
  readonly received: Received<PubAck>
  /** By the clock of `performance`. */
  readonly since: number
  cancelled: boolean
}

/**
 * How many messages from the front fit into one batch. In a batch, a message cannot expect a
 * sequence on a subject that an earlier message of the batch has.
 */
const sizeOfGroup = (waiting: ReadonlyArray<Waiting>, most: number): number => {
  const subjects = new Set<string>()
  let characters = 0
  const end = waiting.findIndex(({ headers, payload, subject }, n) => {
    characters += payload.length
    const fits =
      n < most &&
      characters <= charactersMax &&
      !(subjects.has(subject) && headers.has(expectation))
    subjects.add(subject)
    return !fits
  })
  return end === -1 ? waiting.length : end
}

interface QueueOptions {
  readonly requests: Pick<Requests, "publish" | "send">
  /** False: send each message at once and alone. */
  readonly batches: boolean
  readonly nextBatchId: () => string
}

class StreamQueue {
  readonly #options: QueueOptions
  readonly #waiting: Array<Waiting> = []
  /** Single messages without a response. */
  #singles = 0
  /** Batches without a response. */
  #batches = 0
  #isScheduled = false
  #timer: NodeJS.Timeout | undefined
  /** No batches before this time of the clock of `performance`. */
  #pausedUntil = 0
  /** Messages in a batch. */
  #sizeMax = sizeMax

  constructor(options: QueueOptions) {
    this.#options = options
  }

  add(message: Waiting): void {
    this.#waiting.push(message)
    this.#schedule()
  }

  cancel(message: Waiting): void {
    message.cancelled = true
    const place = this.#waiting.indexOf(message)
    if (place !== -1) this.#waiting.splice(place, 1)
  }

  /** Sends at the end of this turn of the event loop, so that its messages go out in one write. */
  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0) return
    this.#isScheduled = true
    setImmediate(() => this.#send())
  }

  #send(): void {
    this.#isScheduled = false
    const now = performance.now()
    const mayBatch = this.#options.batches && now >= this.#pausedUntil
    while (this.#waiting.length > 0) {
      const mayWait = now < this.#waiting[0]!.since + delayMillisMax
      if (mayWait && this.#batches > 0) break
      const size = mayBatch ? sizeOfGroup(this.#waiting, this.#sizeMax) : 0
      if (size >= sizeMin) this.#sendBatch(this.#waiting.splice(0, size))
      else if (!mayBatch || !mayWait || this.#singles < sizeMin)
        this.#sendSingle(this.#waiting.shift()!)
      else break
    }
    if (this.#waiting.length > 0)
      this.#timer ??= setTimeout(() => this.#lookAgain(), delayMillisMax)
  }

  #lookAgain(): void {
    this.#timer = undefined
    this.#schedule()
  }

  #sendSingle({ headers, payload, received, subject, timeoutMillis }: Waiting): void {
    this.#singles++
    this.#options.requests.send<PubAck>(subject, payload, timeoutMillis, headers, (result) => {
      this.#singles--
      received(result)
      this.#schedule()
    })
  }

  #sendBatch(group: ReadonlyArray<Waiting>): void {
    const { nextBatchId, requests } = this.#options
    this.#batches++
    const id = nextBatchId()
    for (const [n, { headers }] of group.entries()) {
      headers.set(batchId, id)
      headers.set(batchSequence, String(n + 1))
    }
    const last = group.at(-1)!
    last.headers.set(batchCommit, "1")
    for (const { headers, payload, subject } of group.slice(0, -1))
      requests.publish(subject, payload, headers)
    const { headers, payload, subject, timeoutMillis } = last
    requests.send<PubAck>(subject, payload, timeoutMillis, headers, (result) => {
      this.#batches--
      this.#receiveBatch(group, result)
      this.#schedule()
    })
  }

  #receiveBatch(group: ReadonlyArray<Waiting>, result: Result.Result<PubAck, Failure>): void {
    if (Result.isFailure(result) && codeOf(result.failure) !== undefined) {
      if (codeOf(result.failure) === tooLarge)
        this.#sizeMax = Number(result.failure.message.split(" ").at(-1)) || 0
      this.#sendEach(group)
      return
    }
    // The acknowledgement has the sequence of the last message.
    for (const [n, { received }] of group.entries())
      received(Result.map(result, ({ seq }) => ({ seq: seq - group.length + 1 + n })))
  }

  /** Nothing of a refused batch is stored, and the error does not say which message is wrong. */
  #sendEach(group: ReadonlyArray<Waiting>): void {
    this.#pausedUntil = performance.now() + pauseMillis
    for (const message of group) {
      if (message.cancelled) continue
      for (const header of [batchId, batchSequence, batchCommit]) message.headers.delete(header)
      this.#sendSingle(message)
    }
  }
}

/** Fewer writes without a response may have other reasons. */
const writesMin = 3
/** Without writes for so long, nobody knows whether the stream is still silent. */
const forgottenMillis = 60_000
/** Twice the longest time-out: a write that was given up later waited in a frozen process. */
const lateMillis = 10_000

interface Silence {
  /** When the first write without a response since the last response was sent. */
  readonly since: number
  /** When the last such write was given up. */
  readonly last: number
  readonly writes: number
}

/**
 * The streams that give no response to writes of a connection. After an error of its disk, a stream
 * of nats-server answers reads and stays silent on writes until the server is restarted, also with
 * space again. Times: those of `performance`.
 */
export class Silences {
  readonly #silences = new Map<string, Silence>()
  #connectedAt = Number.NEGATIVE_INFINITY

  /** Notes a write that ended: with a response of any kind, or without. */
  note(stream: string, isAnswered: boolean, sentAt: number, now = performance.now()): void {
    if (isAnswered) {
      this.#silences.delete(stream)
      return
    }
    if (sentAt < this.#connectedAt || now - sentAt > lateMillis) return
    const { since, writes } = this.#silences.get(stream) ?? { since: sentAt, writes: 0 }
    this.#silences.set(stream, { since, last: now, writes: writes + 1 })
  }

  /** A new connection: a write that was sent before says nothing about the server. */
  connected(now = performance.now()): void {
    this.#connectedAt = now
    this.#silences.clear()
  }

  /**
   * The streams that acknowledged no write for longer than this time: the last one that was given
   * up counts, as nobody knows what became of a stream that nobody wrote to since.
   */
  longerThan(millis: number, now = performance.now()): ReadonlyArray<string> {
    return [...this.#silences].flatMap(([stream, { last, since, writes }]) =>
      writes >= writesMin && last - since > millis && now - last < forgottenMillis ? [stream] : []
    )
  }
}
