// The queue of one stream: decides which waiting messages go out one by one and which as an atomic
// batch, and sends them.
import * as Result from "effect/Result"
import type { PubAck, Received, Requests } from "./request.ts"
import { codeOf, type Failure } from "./responses.ts"

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

export interface Waiting {
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

export interface QueueOptions {
  readonly requests: Pick<Requests, "publish" | "send">
  /** False: send each message at once and alone. */
  readonly batches: boolean
  readonly nextBatchId: () => string
}

export class StreamQueue {
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
