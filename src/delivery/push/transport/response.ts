// The end of one request: the transport makes it, ../post.ts says what it means.

export interface Answer {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** The first bytes of the body, read for errors only. */
  readonly body: string
}

/** A response, and how long its request waited for a connection. */
export interface Received extends Answer {
  readonly waitedMillis: number
}

/** The code of the error that prevented a response. */
export interface NoAnswer {
  readonly error: string
}

/** The end of a request to a push service. */
export type PushResponse = Received | NoAnswer
