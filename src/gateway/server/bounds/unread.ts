// Bounds the responses that clients have not read: a client that never reads must not fill the
// memory. Each response has a deadline; those of one account, and all together, have a limit.
import type { Socket } from "node:net"

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
  readonly #byAccount = new Map<string, number>()
  readonly #onReset: () => void
  readonly #timer: NodeJS.Timeout
  #total = 0

  constructor(onReset: () => void) {
    this.#onReset = onReset
    this.#timer = setInterval(() => this.#sweep(), sweepMillis).unref()
  }

  /** Counts a response until `remove`. False when the limits leave no memory for the response. */
  add(socket: Socket, account: string, bytes: number): boolean {
    const now = performance.now()
    const until = now + readMillis + bytes / bytesPerMilli
    this.#count(account, bytes)
    this.#unread.set(socket, { account, bytes, since: now, until })
    if (this.#isOver(account)) this.#makeRoom(account, now)
    if (!this.#isOver(account)) return true
    this.remove(socket)
    return false
  }

  remove(socket: Socket): void {
    const response = this.#unread.get(socket)
    if (response === undefined) return
    this.#unread.delete(socket)
    this.#count(response.account, -response.bytes)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #count(account: string, bytes: number): void {
    this.#total += bytes
    const sum = (this.#byAccount.get(account) ?? 0) + bytes
    if (sum > 0) this.#byAccount.set(account, sum)
    else this.#byAccount.delete(account)
  }

  #isCrowded(account: string): boolean {
    return (this.#byAccount.get(account) ?? 0) > bytesPerAccountMax
  }

  #isOver(account: string): boolean {
    return this.#isCrowded(account) || this.#total > bytesMax
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
  }

  /** Resets the oldest connections of an account while `isNeeded`. */
  #resetOldest(account: string, isNeeded: () => boolean, now: number): void {
    for (const [socket, { account: owner, since }] of this.#unread) {
      if (!isNeeded() || now - since < freshMillis) return
      if (owner === account) this.#reset(socket)
    }
  }

  /** Frees memory: first that of this account, then that of the account with the most bytes. */
  #makeRoom(account: string, now: number): void {
    this.#resetOldest(account, () => this.#isCrowded(account), now)
    if (this.#total > bytesMax)
      this.#resetOldest(this.#largest(), () => this.#total > bytesMax, now)
  }

  #largest(): string {
    let most = ""
    for (const [account, bytes] of this.#byAccount)
      if (bytes > (this.#byAccount.get(most) ?? 0)) most = account
    return most
  }
}
