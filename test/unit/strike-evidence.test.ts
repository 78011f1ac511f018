// What the ends of pushes to one push service say about a subscription whose request was refused.
import { assert, describe, it } from "vitest"
import { Endings } from "#delivery/jobs/strikes.ts"
import type { PushResult } from "#domain/outcome.ts"
import type { UserToken } from "#streams/tokens.ts"

const minute = 60_000
const refusedOf = (
  user: string,
  at = 0,
  reason: "refused" | "bad-ttl" = "refused"
): PushResult => ({
  ...{ user: user as UserToken, subscription: "id", attempt: 1, status: 400, millis: 5, at },
  ...{ fate: "dead", reason }
})
const acceptedOf = (user: string, at = 0): PushResult => ({
  ...refusedOf(user, at),
  ...{ status: 201, fate: "delivered", reason: "accepted" }
})
const endings = (...ended: ReadonlyArray<readonly [broadcast: number, result: PushResult]>) => {
  const made = new Endings()
  for (const [broadcast, result] of ended) made.count(broadcast, result, result.at)
  return made
}
const only = [
  [1, refusedOf("a")],
  [2, refusedOf("a")]
] as const

describe("a refusal", () => {
  it("is compared with the others of its broadcast, however many were refused", () => {
    const users = Array.from({ length: 300 }, (_, i) => `u${i}`)
    const some = users.slice(0, 120)
    const made = endings(
      ...some.map((user) => [1, refusedOf(user)] as const),
      ...users.map((user) => [1, acceptedOf(user)] as const)
    )
    for (const user of some) assert.equal(made.proofOf(1, refusedOf(user), 0), "compared")
  })

  it("lasts where its subscription is the only one of two broadcasts", () => {
    assert.isUndefined(endings(only[0]).proofOf(1, refusedOf("a"), 0))
    assert.equal(endings(...only).proofOf(2, refusedOf("a"), 0), "lasting")
  })

  it("does not last where another subscription was refused, or accepted long ago", () => {
    const others = [refusedOf("b"), acceptedOf("b")]
    for (const other of others) {
      const made = endings([0, other], ...only)
      assert.isUndefined(made.proofOf(2, refusedOf("a"), 11 * minute))
    }
  })

  it("of the TTL does not last: that is the same for all of a broadcast", () => {
    assert.isUndefined(endings(...only).proofOf(2, refusedOf("a", 0, "bad-ttl"), 0))
  })
})
