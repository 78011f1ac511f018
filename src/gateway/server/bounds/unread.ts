// Bounds the responses that clients have not read: a client that never reads must not fill the
// memory. Each response has a deadline; those of one account, and all together, have a limit.
import type { Socket } from "node:net"
import { makeShares } from "#basics/shares.ts"

/** Bytes of all unread responses: 16 of the largest. */
const bytesMax = 64 * 1024 ** 2
/** Bytes of unread responses of one account. */
const bytesPerAccountMax = 16 * 1024 ** 2
/** Time to read a response: 30 s, and 1 s more per 16 KiB. */
const readMillis = 30_000
const bytesPerMilli = 16.384
/** A younger response may still be on its way to a client that reads. */
const freshMillis = 1_000
const sweepMillis = 1_000

interface Unread {
  readonly account: string
  readonly bytes: number
  readonly since: number
  readonly until: number
}

/** Calls `onReset` for every connection that is reset because its client does not read. */
export class UnreadResponses {
  readonly #unread = new Map<Socket, Unread>()
  readonly #shares = makeShares(bytesPerAccountMax, bytesMax)
  readonly #onReset: () => void
  /** Runs while there are unread responses. */
  #timer: NodeJS.Timeout | undefined

  constructor(onReset: () => void) {
    this.#onReset = onReset
  }

  /** Counts a response until `remove`. False when the limits leave no memory for the response. */
  add(socket: Socket, account: string, bytes: number): boolean {
    const now = performance.now()
    if (!this.#shares.take(account, bytes)) {
      this.#makeRoom(account, bytes, now)
      if (!this.#shares.take(account, bytes)) return false
    }
    const until = now + readMillis + bytes / bytesPerMilli
    this.#unread.set(socket, { account, bytes, since: now, until })
    this.#timer ??= setInterval(() => this.#sweep(), sweepMillis).unref()
    return true
  }

  remove(socket: Socket): void {
    const response = this.#unread.get(socket)
    if (response === undefined) return
    this.#unread.delete(socket)
    this.#shares.give(response.account, response.bytes)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #reset(socket: Socket): void {
    this.remove(socket)
    this.#onReset()
    // Not a close, which would leave the response in the kernel until the peer reads.
    socket.resetAndDestroy()
  }

  #sweep(): void {
    const now = performance.now()
    for (const [socket, { until }] of this.#unread) if (now > until) this.#reset(socket)
    if (this.#unread.size > 0) return
    this.stop()
    this.#timer = undefined
  }

  /** Resets the oldest connections of an account while `isNeeded`. */
  #resetOldest(account: string, isNeeded: () => boolean, now: number): void {
    for (const [socket, { account: owner, since }] of this.#unread) {
      if (!isNeeded() || now - since < freshMillis) return
      if (owner === account) this.#reset(socket)
    }
  }

  /** Frees memory: first that of this account, then that of the account with the most bytes. */
  #makeRoom(account: string, bytes: number, now: number): void {
    this.#resetOldest(account, () => this.#shares.of(account) + bytes > bytesPerAccountMax, now)
    const isFull = () => this.#shares.total() + bytes > bytesMax
    if (isFull()) this.#resetOldest(this.#shares.largest(account, bytes), isFull, now)
  }
}
