// A user's list of subscriptions: properties that hold in every order of commands.
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import type { SubscriptionCommand } from "#domain/subscription/command.ts"
import {
  emptyList,
  evolveList,
  nextTimestamp,
  type SubscriptionList
} from "#domain/subscription/subscription.ts"
import { removedAt } from "#domain/subscription/tombstone.ts"
import { cleared, del, gone, matched, put, struck, suspended } from "#test/subscription-commands.ts"

/**
 * Requests of clients and push services in any order; the list gives timestamps as the gateway
 * does.
 */
const wish = fc.record({
  what: fc.constantFrom(
    "put",
    "put",
    "put",
    "delete",
    "deleteAll",
    "gone",
    "struck",
    "struck",
    "suspended",
    "cleared",
    "matched"
  ),
  id: fc.constantFrom("a", "b", "c"),
  // A clock that stands still and runs backwards.
  now: fc.integer({ min: 0, max: 50 }),
  /** How many puts back a `gone` names. */
  back: fc.nat(3),
  skipped: fc.nat(4)
})
type Wish = typeof wish extends fc.Arbitrary<infer A> ? A : never

interface Step {
  readonly command: SubscriptionCommand
  readonly seq: number
  readonly before: SubscriptionList
  readonly after: SubscriptionList
}

const run = (wishes: ReadonlyArray<Wish>): ReadonlyArray<Step> => {
  let list = emptyList
  let seq = 0
  const puts: Array<{ readonly id: string; readonly seq: number }> = []
  return wishes.map(({ back, id, now, skipped, what }) => {
    // Other users' commands lie in between.
    seq += 1 + skipped
    const next = nextTimestamp(list, now)
    const generation = puts.filter((each) => each.id === id).at(-1 - back)?.seq ?? 0
    const ids = what === "deleteAll" ? ["a", "b", "c"] : [id]
    const commands = {
      put: () => put(id, next, skipped > 2 ? { renewal: `secret ${seq}` } : {}),
      gone: () => gone(id, generation, now),
      struck: () => struck(id, generation, 1 + skipped, now),
      suspended: () => suspended(id, generation, now),
      cleared: () => cleared(id, generation, now),
      matched: () => matched(id, generation, `key ${skipped}`)
    }
    const command =
      what === "delete" || what === "deleteAll"
        ? del(...ids.map((each, i): readonly [string, number] => [each, next + i]))
        : commands[what]()
    if (what === "put") puts.push({ id, seq })
    const before = list
    list = evolveList(list, command, seq)
    return { command, seq, before, after: list }
  })
}

const history = fc.array(wish, { maxLength: 40 }).map(run)
const fold = (list: SubscriptionList, steps: ReadonlyArray<Step>) =>
  steps.reduce((state, { command, seq }) => evolveList(state, command, seq), list)
const stamps = (list: SubscriptionList) => [
  ...Object.values(list.subscriptions).map(({ lastModified }) => lastModified),
  ...Object.values(list.tombstones).map(removedAt)
]

describe("any order of commands", () => {
  it("gives the same list when any part of it is delivered again", () => {
    fc.assert(
      fc.property(history, fc.nat(40), fc.nat(40), fc.nat(40), (steps, a, b, c) => {
        const [from = 0, to = 0, end = 0] = [a, b, c]
          .map((each) => Math.min(each, steps.length))
          .sort((x, y) => x - y)
        const last = fold(emptyList, steps)
        assert.deepStrictEqual(fold(last, steps.slice(from, to)), last)
        const again = fold(fold(emptyList, steps.slice(0, to)), steps.slice(from, end))
        assert.deepStrictEqual(fold(again, steps.slice(to)), last)
      })
    )
  })

  it("changes nothing in the list it began with", () => {
    fc.assert(
      fc.property(history, (steps) => {
        for (const { after, before, command, seq } of steps)
          assert.deepStrictEqual(evolveList(structuredClone(before), command, seq), after)
      })
    )
  })

  it("gives each change a timestamp above all earlier ones, whatever the clock says", () => {
    fc.assert(
      fc.property(history, (steps) => {
        for (const { after, before } of steps) {
          const highest = Math.max(0, ...stamps(before))
          assert.isAtLeast(before.lastModified, highest)
          const fresh = stamps(after).filter((stamp) => !stamps(before).includes(stamp))
          for (const stamp of fresh) assert.isAbove(stamp, before.lastModified)
          assert.strictEqual(
            after.lastModified,
            fresh.length === 0 ? before.lastModified : Math.max(...fresh)
          )
          assert.strictEqual(new Set(stamps(after)).size, stamps(after).length)
        }
      })
    )
  })

  it("never shows a subscription and its tombstone at once", () => {
    fc.assert(
      fc.property(history, (steps) => {
        for (const { after } of steps)
          for (const id of Object.keys(after.tombstones))
            assert.isUndefined(after.subscriptions[id])
      })
    )
  })

  it("applies events of push services only to the generation that they name", () => {
    const bare = (list: SubscriptionList) =>
      Object.fromEntries(
        Object.entries(list.subscriptions).map(
          ([id, { strikes: _, suspended: __, vapidKey: ___, ...stored }]) => [id, stored]
        )
      )
    fc.assert(
      fc.property(history, (steps) => {
        for (const { after, before, command, seq } of steps) {
          if (!/struck|suspended|cleared|matched/.test(command.type)) continue
          assert.deepStrictEqual(
            { ...after, subscriptions: bare(after) },
            { ...before, seq, subscriptions: bare(before) }
          )
          const { id, generation } = command as { id: string; generation: number }
          for (const [each, stored] of Object.entries(after.subscriptions)) {
            assert.isFalse(stored.strikes !== undefined && stored.suspended !== undefined)
            if (each !== id || stored.seq !== generation)
              assert.deepStrictEqual(stored, before.subscriptions[each])
          }
        }
      })
    )
  })

  it("lets a gone remove exactly the generation it names", () => {
    fc.assert(
      fc.property(history, (steps) => {
        for (const { after, before, command } of steps) {
          if (command.type !== "subscription.gone") continue
          const { [command.id]: target, ...others } = before.subscriptions
          const expected =
            target === undefined || target.seq === command.generation
              ? others
              : before.subscriptions
          assert.deepStrictEqual(after.subscriptions, expected)
        }
      })
    )
  })
})
