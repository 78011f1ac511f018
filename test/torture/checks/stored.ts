// Every acknowledged broadcast is in LOG under the sequence that was acknowledged, and one that was
// repeated with a key or an id is there once.
import type { Look } from "./check.ts"
import { broadcastsOf, type Check, few } from "./check.ts"

const markersOf = ({ recorded }: Look): Map<string, Array<number>> => {
  const ids = new Map<string, Array<number>>()
  for (const { id, marker } of recorded.broadcasts.values())
    if (marker !== undefined) ids.set(marker, [...(ids.get(marker) ?? []), id])
  return ids
}

export const stored: Check = {
  name: "acknowledged is stored",
  run: async (look) => {
    const markers = markersOf(look)
    const violations: Array<string> = []
    for (const { id, marker, via } of broadcastsOf(look)) {
      const ids = markers.get(marker) ?? []
      if (id !== undefined && !ids.includes(id))
        violations.push(`broadcast ${id} (${via}) was acknowledged and is not in LOG`)
      if (ids.length > 1) violations.push(`${via}: one broadcast is in LOG as ${ids.join(", ")}`)
      for (const each of ids)
        if (look.recorded.broadcasts.get(each)?.rejected)
          violations.push(`broadcast ${each} was rejected`)
    }
    return few(violations)
  }
}
