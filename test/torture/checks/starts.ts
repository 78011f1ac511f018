// Scheduled broadcasts start once and not before their time, and those that are cancelled before
// go to nobody.
import type { Model } from "../model/model.ts"
import type { Recorded } from "../model/recorded.ts"
import { broadcastsOf, type Check, few } from "./check.ts"

/** nats-server and the rig read the same clock, to the millisecond, before and after a write. */
const slackMillis = 20

/** Notes when broadcasts started, by the clock of the model: their audience is that of then. */
export const noteStarts = (model: Model, { broadcasts }: Recorded): void => {
  for (const { marker, starts } of broadcasts.values()) {
    const broadcast = model.broadcasts.get(marker ?? "")
    if (broadcast === undefined || starts[0] === undefined) continue
    const at = starts[0].at - performance.timeOrigin
    broadcast.start = [at - slackMillis, at + slackMillis]
  }
}

export const starts: Check = {
  name: "what is scheduled starts once",
  run: async (look) => {
    const violations: Array<string> = []
    const markers = new Map(broadcastsOf(look).map((one) => [one.marker, one]))
    for (const { id, isScheduled, marker, pushes, starts } of look.recorded.broadcasts.values()) {
      const broadcast = markers.get(marker ?? "")
      if (broadcast === undefined) continue
      const isEnded = broadcast.cancelled !== undefined
      if (starts.length > 1) violations.push(`broadcast ${id} started ${starts.length} times`)
      if (starts.length > 0 && !isScheduled) violations.push(`broadcast ${id} started twice`)
      for (const { at, dueAt } of starts)
        if (at < dueAt - slackMillis)
          violations.push(`broadcast ${id} started ${dueAt - at} ms too early`)
      if (!isScheduled || starts.length > 0) continue
      if (!isEnded) violations.push(`broadcast ${id} did not start`)
      if (pushes.size > 0) violations.push(`broadcast ${id} was sent without a start`)
    }
    return few(violations)
  }
}
