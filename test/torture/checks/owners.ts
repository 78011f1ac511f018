// Whose browser it is that two users stored at the same moment: the one whose message is later in
// LOG. The checks that follow expect it of buckets and pushes.
import { acknowledge, keyOf, type Model } from "../model/model.ts"
import type { Recorded } from "../model/recorded.ts"

/** Notes who has the browsers that were contested in this cycle. */
export const noteOwners = ({ contested }: Model, { stored }: Recorded): void => {
  for (const rivals of contested.splice(0)) {
    const inOrder = rivals.toSorted(
      (a, b) => (stored.get(keyOf(a)) ?? 0) - (stored.get(keyOf(b)) ?? 0)
    )
    const owner = inOrder.pop()!
    // The order may have changed after both were acknowledged, by an attempt without a response.
    if (owner.removed?.ackedAt === undefined) {
      acknowledge(owner.stored)
      for (const { removed } of inOrder) if (removed !== undefined) acknowledge(removed)
    }
    delete owner.removed
    // The next owner takes the browser from the last one of the list.
    const { owners } = owner.device
    owners.push(...owners.splice(owners.indexOf(owner), 1))
  }
}
