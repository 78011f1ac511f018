// A page of the owners of endpoints: how long it knows the last owner of one that is gone, and how
// many of them.
import { assert, describe, it } from "@effect/vitest"
import {
  type EndpointOwners,
  hasRoomFor,
  lastOwnerOf,
  noOwners,
  ownerOf,
  ownersMax,
  withOwner
} from "#domain/subscription/owners.ts"

const dayMillis = 24 * 60 * 60_000
const own = (page: EndpointOwners, hash: string, owner: string, now = 0) =>
  withOwner(page, hash, { owner }, page.seq + 1, now)
const end = (page: EndpointOwners, hash: string, owner: string, endedAt: number) =>
  withOwner(page, hash, { owner, endedAt }, page.seq + 1, endedAt)

describe("the last owner of an endpoint that a push service ended", () => {
  const page = end(own(own(noOwners, "b", "bob"), "a", "ann"), "b", "bob", 5)

  it("is noted beside the owners, until the endpoint has one, or its user removes it", () => {
    assert.deepStrictEqual(page, {
      v: 1,
      seq: 3,
      owners: { a: "ann" },
      ended: { b: { owner: "bob", at: 5 } }
    })
    assert.isUndefined(ownerOf(page, "b"))
    assert.deepStrictEqual(lastOwnerOf(page, "b"), { owner: "bob", endedAt: 5 })
    const owners = { a: "ann", b: "cid" }
    assert.deepStrictEqual(own(page, "b", "cid"), { v: 1, seq: 4, owners })
    const removed = withOwner(page, "b", undefined, 4, 6)
    assert.deepStrictEqual(removed, { v: 1, seq: 4, owners: { a: "ann" } })
  })

  it("is forgotten after 30 days", () => {
    assert.isDefined(lastOwnerOf(own(page, "c", "cid", 4 + 30 * dayMillis), "b"))
    assert.isUndefined(lastOwnerOf(own(page, "c", "cid", 5 + 30 * dayMillis), "b"))
  })

  it("makes room for owners, the earliest first", () => {
    const name = (i: number) => String(i).padStart(4, "0")
    let full = noOwners
    for (let i = 0; i < ownersMax; i++) full = own(full, name(i), "ann")
    assert.isFalse(hasRoomFor(full, "x"))
    for (const i of [7, 3]) full = end(full, name(i), "ann", 10 - i)
    assert.isTrue(hasRoomFor(full, "x"))
    const next = own(full, "x", "bob", 10)
    assert.deepStrictEqual(Object.keys(next.ended ?? {}), [name(3)])
    assert.isUndefined(own(next, "y", "bob", 10).ended)
    const bytes = JSON.stringify({ ["a".repeat(64)]: { owner: "b".repeat(22), at: Date.now() } })
    assert.isAtMost(bytes.length, 122)
  })
})
