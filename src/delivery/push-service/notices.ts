// The lines of the log about one push service: one when something begins or ends.
// Lines name the host and the reason, never an endpoint.
import type { RefusalReason, RetryReason } from "#domain/reason.ts"
import type { GuardChange } from "./mass-gone.ts"
import type { Narrowed } from "./window.ts"

export interface Notice {
  readonly level: "info" | "warn" | "error"
  readonly text: string
}

const none: ReadonlyArray<Notice> = []

export class Notices {
  readonly #host: string
  #notices: Array<Notice> = []

  constructor(host: string) {
    this.#host = host
  }

  /** Returns the notices since the last call. */
  take(): ReadonlyArray<Notice> {
    if (this.#notices.length === 0) return none
    const taken = this.#notices
    this.#notices = []
    return taken
  }

  reached(): void {
    this.#add("info", "is reached again")
  }

  notReached(reason: RetryReason, change: "opens" | "silent"): void {
    const then = change === "opens" ? "pushes to it wait" : "its pushes are tried again"
    this.#add(reason === "tls" ? "error" : "warn", `cannot be reached (${reason}): ${then}`)
  }

  credentialsAccepted(): void {
    this.#add("info", "takes our credentials again")
  }

  credentialsRefused(reason: RefusalReason, status: number): void {
    this.#add("error", `refuses our credentials (${reason}, status ${status}): pushes to it wait`)
  }

  credentialsMerged(openMillis: number): void {
    if (openMillis === 0) this.#add("info", "takes our credentials again, another worker says")
    else this.#add("warn", "refuses our credentials, another worker says: pushes to it wait")
  }

  throttled({ closedMillis, window }: Narrowed): void {
    const wait = closedMillis === 0 ? "" : `, and none for ${Math.round(closedMillis / 1000)} s`
    this.#add("warn", `throttles us: ${window} pushes at a time from now on${wait}`)
  }

  throttledMerged(window: number): void {
    this.#add("warn", `throttles another worker: at most ${window} pushes at a time from now on`)
  }

  fullSpeed(): void {
    this.#add("info", "is sent to at full speed again")
  }

  guardChanged(change: GuardChange): void {
    const most = "says of most subscriptions that they"
    if (change === "holds")
      this.#add("warn", `${most} are gone: none is removed until that changes`)
    if (change === "trusts") this.#add("info", `${most} live: the gone ones are removed again`)
  }

  #add(level: Notice["level"], text: string): void {
    this.#notices.push({ level, text: `${this.#host} ${text}` })
  }
}
