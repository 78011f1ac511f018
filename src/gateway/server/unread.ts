// Answers that the operating system has not taken yet: a client that never reads must not fill the
// memory. Each answer has a deadline, and all together have a bound.
import type { Socket } from "node:net"

/** All answers in hand. 64 MiB are 16 of the largest. */
const bytesMax = 64 * 1024 ** 2
/** Time to read an answer: half a minute, and as long as 16 KiB a second take. */
const readMillis = 30_000
const bytesPerMilli = 16.384
/** An answer younger than this may still be on its way to a client that reads. */
const freshMillis = 1_000
const sweepMillis = 1_000

interface Unread {
  readonly bytes: number
  readonly since: number
  readonly until: number
}

export interface UnreadAnswers {
  /** Counts an answer until {@link taken}; false when there is no room for it. */
  readonly hold: (socket: Socket, bytes: number) => boolean
  readonly taken: (socket: Socket) => void
  readonly stop: () => void
}

/** `cut` is called for every connection that is reset because its client does not read. */
export const makeUnreadAnswers = (cut: () => void): UnreadAnswers => {
  const unread = new Map<Socket, Unread>()
  let total = 0
  const taken = (socket: Socket): void => {
    total -= unread.get(socket)?.bytes ?? 0
    unread.delete(socket)
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
  const makeRoom = (now: number) => {
    for (const [socket, { since }] of unread) {
      if (total <= bytesMax || now - since < freshMillis) return
      reset(socket)
    }
  }
  const timer = setInterval(sweep, sweepMillis).unref()
  return {
    hold: (socket, bytes) => {
      const now = performance.now()
      total += bytes
      unread.set(socket, { bytes, since: now, until: now + readMillis + bytes / bytesPerMilli })
      if (total > bytesMax) makeRoom(now)
      if (total <= bytesMax) return true
      taken(socket)
      return false
    },
    taken,
    stop: () => clearInterval(timer)
  }
}
