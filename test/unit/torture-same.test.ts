// The rig allows an entry to differ from a rebuild where LOG has lost what the entry came from, and
// nowhere else.
import { assert, describe, it } from "vitest"
import { type Ground, isSame } from "../torture/checks/same.ts"
import { endedMillis, historyMillisMin, renewableMillis } from "../torture/fleet/days.ts"

const now = 1_000_000_000
const old = now - historyMillisMin - 1
/** Messages before 10 are older than the history. LOG lacks 5 and 15. */
const ground: Ground = {
  now,
  hasMessage: (seq) => seq !== 5 && seq !== 15,
  storedAt: (seq) => (seq < 10 ? old : now - 1),
  areErased: false
}

const areSame = (bucket: string, key: string, before?: object, after?: object, more?: object) =>
  isSame(
    { bucket: `bellcast_${bucket}`, key, before: textOf(before), after: textOf(after) },
    { ...ground, ...more }
  )

const textOf = (value: object | undefined) => value && JSON.stringify(value)

describe("an entry and the one of a rebuild", () => {
  it("are the same but for tombstones from before the history", () => {
    const list = (tombstones: object) => ({ seq: 12, subscriptions: { a: 1 }, tombstones })
    const areAlike = (one: object, other: object) =>
      areSame("subscriptions", "user", list(one), list(other))
    assert.isTrue(areAlike({ b: old }, {}))
    assert.isFalse(areAlike({ b: now }, {}))
    assert.isFalse(areSame("subscriptions", "user", list({}), undefined))
    assert.isFalse(areSame("subscriptions", "user", list({}), { ...list({}), seq: 11 }))
    const gone = { seq: 12, subscriptions: {}, tombstones: { b: old } }
    assert.isTrue(areSame("subscriptions", "user", gone, undefined))
  })

  it("are the same but for the move of an erased user", () => {
    const list = (tombstone: object) => ({ seq: 12, subscriptions: {}, tombstones: { tombstone } })
    const one = list({ lastModified: now, isMoved: true, generation: 3, moved: 5 })
    const other = list({ lastModified: now, isMoved: true })
    assert.isTrue(areSame("subscriptions", "user", one, other, { areErased: true }))
    assert.isFalse(areSame("subscriptions", "user", one, other))
  })

  it("are the same but for the last message of a page, where LOG lacks it or it is old", () => {
    const page = (seq: number, ended = {}) => ({ seq, owners: { h: "user" }, ended })
    const key = "=endpoints.0"
    for (const seq of [3, 5, 15])
      assert.isTrue(areSame("subscriptions", key, page(seq), page(2)), `${seq}`)
    assert.isFalse(areSame("subscriptions", key, page(12), page(11)))
    assert.isFalse(areSame("subscriptions", key, page(3), undefined))
    const over = page(12, { e: { at: now - renewableMillis } })
    assert.isTrue(areSame("subscriptions", key, over, page(12)))
    assert.isFalse(areSame("subscriptions", key, page(12, { e: { at: now } }), page(12)))
    assert.isTrue(areSame("registrations", "=users.a", { seq: 3, users: {} }, undefined))
    assert.isFalse(areSame("registrations", "=users.a", { seq: 3, users: { u: 1 } }, undefined))
  })

  it("are the same but for registrations that ended a while ago", () => {
    const ended = { seq: 12, on: false, since: 1 }
    assert.isFalse(areSame("registrations", "c.u", ended, undefined))
    const storedAt = () => now - endedMillis - 1
    assert.isTrue(areSame("registrations", "c.u", ended, undefined, { storedAt }))
    assert.isTrue(areSame("registrations", "c.u", { ...ended, seq: 15 }, undefined))
    assert.isFalse(areSame("registrations", "c.u", { ...ended, on: true }, undefined, { storedAt }))
  })

  it("are the same but for the last message of a count, where a user was erased", () => {
    const count = { seq: 12, since: 1, registrations: 2, lastModified: 3 }
    const isAlike = (more: object, areErased: boolean) =>
      areSame("channels", "c.registrations", count, { ...count, ...more }, { areErased })
    assert.isTrue(isAlike({ seq: 11 }, true))
    assert.isFalse(isAlike({ seq: 11 }, false))
    assert.isFalse(isAlike({ seq: 11, registrations: 1 }, true))
  })
})
