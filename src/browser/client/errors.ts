// The errors of the client: `push.error`, and what `join`, `leave` and `channels` reject with. The
// codes are explained in ../types/client.d.ts.
import type { PushError, PushErrorCode } from "../types/client.d.ts"

const retryAfterDefaultSeconds = 2

export class BellcastError extends Error implements PushError {
  readonly code: PushErrorCode
  readonly retryable: boolean
  /** When the client tries again by itself. */
  readonly retryAfterMillis: number

  constructor(code: PushErrorCode, retryable = false, cause?: unknown, retryAfterSeconds?: number) {
    super(`Bellcast: ${code}`, { cause })
    this.code = code
    this.retryable = retryable
    this.retryAfterMillis = (retryAfterSeconds || retryAfterDefaultSeconds) * 1000
  }
}

/** For `catch`: throws an error of ours as it is, another one as the cause of a retryable one. */
export const failAs =
  (code: PushErrorCode) =>
  (cause?: unknown): never => {
    throw cause instanceof BellcastError ? cause : new BellcastError(code, true, cause)
  }

/** An error that no step has named is one of the browser, such as of its storage. */
export const asBellcastError = (cause: unknown): BellcastError =>
  cause instanceof BellcastError ? cause : new BellcastError("browser", false, cause)
