// One request and its response over HTTP/1.1 or HTTP/2, with bounds on time and size.
import type { PushResponse } from "../classify.ts"

export interface Request {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | undefined
}

/** "unprocessed": the peer promises that it did not process the request. */
export type Reply = PushResponse | "unprocessed"
export type Done<R = PushResponse> = (reply: R) => void

/** Milliseconds. */
export interface Limits {
  readonly connectMillis: number
  /** From the request to the status of the response. */
  readonly responseMillis: number
  /** Between two parts of the body of the response. */
  readonly silenceMillis: number
  /** From the request to the end of the response. */
  readonly totalMillis: number
}

export const limitsOf = (pushTimeoutMillis: number): Limits => {
  const connectMillis = 5_000
  return {
    connectMillis,
    responseMillis: pushTimeoutMillis,
    silenceMillis: pushTimeoutMillis / 2,
    totalMillis: connectMillis + 2 * pushTimeoutMillis
  }
}

/** Characters of an error body that classify.ts searches for a few words. */
const bodyCharsMax = 2_048
/** A longer body is cut off: over HTTP/1.1 with its connection, over HTTP/2 with its stream. */
const bodyBytesMax = 65_536

export const isSuccess = (status: number): boolean => status >= 200 && status < 300

/** Collects one response; calls `done` once. `totalMillis` starts now. */
export class Exchange {
  status = 0
  readonly #done: Done<Reply>
  readonly #lateAt: number
  #headers: Record<string, string> = {}
  #text = ""
  #bytes = 0
  #isDone = false

  constructor(totalMillis: number, done: Done<Reply>) {
    this.#done = done
    this.#lateAt = performance.now() + totalMillis
  }

  get isLate(): boolean {
    return performance.now() > this.#lateAt
  }

  /** Takes a final status (not 1xx). A header that came twice becomes a list. */
  begin(status: number, headers: Readonly<Record<string, unknown>>): void {
    this.status = status
    this.#headers = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, String(value)])
    )
    // The status of a success is enough; the caller drops the body.
    if (isSuccess(status)) this.finish()
  }

  /**
   * Takes a part of the body. Returns false when the body is too long or too slow: read no more of
   * it.
   */
  add(chunk: Buffer): boolean {
    this.#bytes += chunk.length
    if (this.#text.length < bodyCharsMax)
      this.#text += chunk.toString("latin1").slice(0, bodyCharsMax - this.#text.length)
    return this.#bytes <= bodyBytesMax && !this.isLate
  }

  finish(): void {
    this.#settle({ status: this.status, headers: this.#headers, body: this.#text })
  }

  /** A status that came before the error stays valid. */
  fail(error: string): void {
    if (this.status !== 0) this.finish()
    else this.#settle({ error })
  }

  /** The peer did not process the request. */
  unprocessed(): void {
    this.#settle("unprocessed")
  }

  #settle(reply: Reply): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#done(reply)
  }
}

/** The code of an error, fit for classify.ts. */
export const codeOf = (error: unknown): string =>
  (error as NodeJS.ErrnoException | null)?.code ?? "UNKNOWN"
