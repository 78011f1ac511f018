// Every acknowledged broadcast is in LOG under the sequence that was acknowledged, and one that was
// repeated with a key or an id is there once.
import type { Broadcast } from "../model/model.ts"
import type { Look } from "./check.ts"
import { broadcastsOf, type Check, few } from "./check.ts"

const markersOf = ({ recorded }: Look): Map<string, Array<number>> => {
  const ids = new Map<string, Array<number>>()
  for (const { id, marker } of recorded.broadcasts.values())
    if (marker !== undefined) ids.set(marker, [...(ids.get(marker) ?? []), id])
  return ids
}

/** Why a broadcast must not be in LOG. */
const barOf = ({ isRefused, right, startedAt }: Broadcast): string | undefined => {
  const endedAt = right?.revoked?.ackedAt
  if (endedAt !== undefined && startedAt > endedAt + right!.graceMillis)
    return "was published after the right of its publisher ended"
  return isRefused ? "was refused" : undefined
}

export const stored: Check = {
  name: "acknowledged is stored",
  run: async (look) => {
    const markers = markersOf(look)
    const violations: Array<string> = []
    for (const broadcast of broadcastsOf(look)) {
      const { id, marker, via } = broadcast
      const ids = markers.get(marker) ?? []
      if (id !== undefined && !ids.includes(id))
        violations.push(`broadcast ${id} (${via}) was acknowledged and is not in LOG`)
      if (ids.length > 1) violations.push(`${via}: one broadcast is in LOG as ${ids.join(", ")}`)
      const bar = barOf(broadcast)
      if (bar !== undefined && ids.length > 0)
        violations.push(`broadcast ${ids.join(", ")} (${via}) ${bar}, and is in LOG`)
      for (const each of ids)
        if (look.recorded.broadcasts.get(each)?.rejected)
          violations.push(`broadcast ${each} was rejected`)
    }
    return few(violations)
  }
}
