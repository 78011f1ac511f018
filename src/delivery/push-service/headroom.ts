// Event-loop headroom: whether this process has time for more pushes. When it is always busy, more
// pushes under way bring no speed, only more connections and memory.
import { performance } from "node:perf_hooks"

const measuredMillis = 50
const busyShareMax = 0.95

/**
 * Returns a function that tells whether the event loop was idle for 5 % of the last 50 ms or more.
 */
export const makeHeadroom = (): (() => boolean) => {
  let last = performance.eventLoopUtilization()
  let measuredAt = performance.now()
  let hasHeadroom = true
  return () => {
    const now = performance.now()
    if (now - measuredAt < measuredMillis) return hasHeadroom
    const current = performance.eventLoopUtilization()
    hasHeadroom = performance.eventLoopUtilization(current, last).utilization < busyShareMax
    last = current
    measuredAt = now
    return hasHeadroom
  }
}
