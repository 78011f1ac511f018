// Answers that the operating system has not taken yet: a client that never reads must not fill the
// memory. Each answer has a deadline; those of one account, and all together, have a bound.
import type { Socket } from "node:net"

/** All answers in hand. 64 MiB are 16 of the largest. */
const bytesMax = 64 * 1024 ** 2
/** Those of one account, so that it cannot take the room of all others. */
const bytesPerAccountMax = 16 * 1024 ** 2
/** Time to read an answer: half a minute, and as long as 16 KiB a second take. */
const readMillis = 30_000
const bytesPerMilli = 16.384
/** An answer younger than this may still be on its way to a client that reads. */
const freshMillis = 1_000
const sweepMillis = 1_000

interface Unread {
  readonly account: string
  readonly bytes: number
  readonly since: number
  readonly until: number
}

export interface UnreadResponses {
  /** Counts an answer until {@link taken}; false when there is no room for it. */
  readonly hold: (socket: Socket, account: string, bytes: number) => boolean
  readonly taken: (socket: Socket) => void
  readonly stop: () => void
}

/** `cut` is called for every connection that is reset because its client does not read. */
export const makeUnreadResponses = (cut: () => void): UnreadResponses => {
  const unread = new Map<Socket, Unread>()
  const byAccount = new Map<string, number>()
  let total = 0
  const add = (account: string, bytes: number): void => {
    total += bytes
    const held = (byAccount.get(account) ?? 0) + bytes
    if (held > 0) byAccount.set(account, held)
    else byAccount.delete(account)
  }
  const taken = (socket: Socket): void => {
    const answer = unread.get(socket)
    if (answer === undefined) return
    unread.delete(socket)
    add(answer.account, -answer.bytes)
  }
  const reset = (socket: Socket): void => {
    taken(socket)
    cut()
    // A close would leave the rest of the answer in the kernel until the peer reads it.
    socket.resetAndDestroy()
  }
  const sweep = () => {
    const now = performance.now()
    for (const [socket, { until }] of unread) if (now > until) reset(socket)
  }
  const isCrowded = (account: string): boolean => (byAccount.get(account) ?? 0) > bytesPerAccountMax
  /** Resets the oldest connections of an account, as long as that is needed. */
  const cutOldest = (account: string, isNeeded: () => boolean, now: number) => {
    for (const [socket, { account: owner, since }] of unread) {
      if (!isNeeded() || now - since < freshMillis) return
      if (owner === account) reset(socket)
    }
  }
  const largest = (): string =>
    [...byAccount].reduce((most, each) => (each[1] > most[1] ? each : most), ["", 0] as const)[0]
  const makeRoom = (account: string, now: number) => {
    cutOldest(account, () => isCrowded(account), now)
    if (total > bytesMax) cutOldest(largest(), () => total > bytesMax, now)
  }
  const timer = setInterval(sweep, sweepMillis).unref()
  return {
    hold: (socket, account, bytes) => {
      const now = performance.now()
      add(account, bytes)
      const until = now + readMillis + bytes / bytesPerMilli
      unread.set(socket, { account, bytes, since: now, until })
      const isOver = () => isCrowded(account) || total > bytesMax
      if (isOver()) makeRoom(account, now)
      if (!isOver()) return true
      taken(socket)
      return false
    },
    taken,
    stop: () => clearInterval(timer)
  }
}
