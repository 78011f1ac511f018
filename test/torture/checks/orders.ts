// Orders of publishers beside whom a broadcast goes to: another payload before the start, and
// a pause when too many pushes fail.
import type { Broadcast } from "../model/model.ts"
import type { RecordedBroadcast } from "../model/recorded.ts"
import { broadcastsOf, type Check, few } from "./check.ts"

export const changed: Check = {
  name: "everybody gets the payload as changed last",
  run: async (look) => {
    const violations = broadcastsOf(look).flatMap(({ id, marker, terms }) => {
      const editions = [...(look.model.editions.get(marker) ?? [])]
      const known = editions.every((each) => terms.some(({ edition }) => edition === each))
      if (known && editions.length <= 1) return []
      const expected = terms.map(({ edition }) => edition).join(" or ")
      return [`broadcast ${id}: editions ${editions.join(" and ")} arrived, not ${expected}`]
    })
    return few(violations)
  }
}

/** Section 4.8 of the contract. */
const attemptedMin = 100

const wrongOf = (broadcast: Broadcast, recorded: RecordedBroadcast): ReadonlyArray<string> => {
  const { failedShare } = broadcast
  const { ownPauses, pushes } = recorded
  const tried = [...pushes.values()].filter(({ isTried }) => isTried).length
  const failures = [...pushes.values()].filter(({ isFailed }) => isFailed).length
  const runs = new Set(ownPauses.map(({ run }) => run))
  const wrong = ownPauses.flatMap(({ attempted, failed }) => {
    if (failedShare === undefined) return ["without pause_when"]
    const isDue = attempted >= attemptedMin && failed / attempted >= failedShare
    return [
      ...(isDue ? [] : [`by ${failed} failed of ${attempted}, its share is ${failedShare}`]),
      ...(attempted > tried ? [`by ${attempted} attempted pushes, ${tried} are recorded`] : []),
      ...(failed > failures ? [`by ${failed} failed pushes, ${failures} are recorded`] : [])
    ]
  })
  return runs.size < ownPauses.length ? [...wrong, "twice without a resume"] : wrong
}

export const pauses: Check = {
  name: "a broadcast pauses itself for its reason",
  run: async (look) => {
    const recorded = new Map([...look.recorded.broadcasts.values()].map((one) => [one.marker, one]))
    const violations = broadcastsOf(look).flatMap((broadcast) => {
      const found = recorded.get(broadcast.marker)
      if (found === undefined) return []
      look.figures.ownPauses += found.ownPauses.length
      return wrongOf(broadcast, found).map(
        (wrong) => `broadcast ${found.id} paused itself ${wrong}`
      )
    })
    return few(violations)
  }
}
