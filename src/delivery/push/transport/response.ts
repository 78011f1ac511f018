// What comes back for one request: the transport makes it, ../classify.ts says what it means.

export interface Received {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** The first bytes of the body, read for errors only. */
  readonly body: string
}

/** A push service's response, or the code of the error that prevented one. */
export type PushResponse = Received | { readonly error: string }
