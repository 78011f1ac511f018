// Whether this process has time for more pushes. More of them under way at once bring no speed when it is busy all
// the time, only more connections and more memory.
import { performance } from "node:perf_hooks"

const measuredMillis = 50
const busyShareMax = 0.95

/** Returns a function that tells whether the event loop was idle for a while in the last 50 ms or more. */
export const makeSpareTime = (): (() => boolean) => {
  let last = performance.eventLoopUtilization()
  let measuredAt = performance.now()
  let hasTime = true
  return () => {
    const now = performance.now()
    if (now - measuredAt < measuredMillis) return hasTime
    const current = performance.eventLoopUtilization()
    hasTime = performance.eventLoopUtilization(current, last).utilization < busyShareMax
    last = current
    measuredAt = now
    return hasTime
  }
}
