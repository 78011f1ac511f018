// A user's registrations and the count of a channel: what each command does, and their limit.
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import {
  type ChannelRegistrations,
  countAt,
  emptyChannel,
  evolveChannel,
  evolveCounts,
  evolveRegistration,
  foldRegistration,
  noCounts,
  type Registration,
  type RegistrationCommand,
  type RegistrationCounts,
  registeredSince
} from "#domain/registration.ts"
import { givens } from "#test/given.ts"
import { register, unregister } from "#test/registration-commands.ts"

const given = givens<Registration | undefined, RegistrationCommand>(evolveRegistration, undefined)

describe("a registration", () => {
  it("begins at the command that switched it on", () => {
    assert.deepStrictEqual(given().when(register()), {
      v: 1,
      seq: 1,
      since: 1,
      on: true,
      was: 0
    })
  })

  it("that is repeated is the one that was made first, and is not counted again", () => {
    const first = { v: 1, seq: 1, since: 1, on: true, was: 0 }
    assert.deepStrictEqual(given(register()).when(register()), first)
  })

  it("that ends says so", () => {
    assert.deepStrictEqual(given(register(), register()).when(unregister()), {
      v: 1,
      seq: 3,
      since: 3,
      on: false,
      was: 1
    })
  })

  it("that is made again begins anew", () => {
    assert.deepStrictEqual(given(register(), unregister()).when(register()), {
      v: 1,
      seq: 3,
      since: 3,
      on: true,
      was: 0
    })
  })

  it("can end without ever having begun", () => {
    assert.deepStrictEqual(given().when(unregister()), {
      v: 1,
      seq: 1,
      since: 1,
      on: false,
      was: 0
    })
  })

  it("is not changed by a command that was folded before", () => {
    const { before, when } = given(register(), unregister())
    assert.strictEqual(when(register(), 1), before)
    assert.strictEqual(when(unregister(), 2), before)
  })
})

describe("a channel", () => {
  const on: Registration = { v: 1, seq: 7, since: 7, on: true, was: 0 }

  it("counts a registration once, and takes its time", () => {
    const counted = evolveChannel(emptyChannel, on, register(50), 7)
    assert.deepStrictEqual(counted, {
      v: 1,
      seq: 7,
      since: 7,
      registrations: 1,
      lastModified: 50
    })
    assert.strictEqual(evolveChannel(counted, on, register(50), 7), counted)
  })

  it("moves its timestamp when the count changes and then always forward", () => {
    const counted: ChannelRegistrations = {
      v: 1,
      seq: 6,
      since: 2,
      registrations: 3,
      lastModified: 100
    }
    assert.strictEqual(evolveChannel(counted, on, register(50), 7).lastModified, 101)
    assert.deepStrictEqual(evolveChannel(counted, { ...on, was: 3 }, register(500), 7), {
      ...counted,
      seq: 7
    })
  })

  it("does not count a registration that has moved on since", () => {
    assert.strictEqual(evolveChannel(emptyChannel, { ...on, seq: 9 }, register(), 7), emptyChannel)
  })
})

describe("a limited put", () => {
  const limited = { type: "registration.put", user: "u", at: 0, registrationsMax: 2 } as const

  it("is rejected when the user holds the maximum, and changes only the expected sequence", () => {
    const { reason, registration } = foldRegistration(undefined, limited, 7, 2)
    assert.strictEqual(reason, "the user holds as many registrations as may be: 2")
    assert.deepStrictEqual(registration, { v: 1, seq: 7, since: 7, on: false, was: 0 })
    assert.strictEqual(evolveChannel(emptyChannel, registration, limited, 7), emptyChannel)
  })

  it("of a registration that is held is no new one", () => {
    const held = evolveRegistration(undefined, limited, 1)
    const { reason, registration } = foldRegistration(held, limited, 2, 2)
    assert.isUndefined(reason)
    assert.isTrue(registration.on)
  })
})

/** What is stored of some users who share one value of counts. */
interface Store {
  readonly places: Readonly<Record<string, Registration>>
  readonly counts: RegistrationCounts
}
interface Change {
  readonly user: string
  readonly place: string
  readonly command: RegistrationCommand
}

const max = 2
const changes = fc.array(
  fc.record({ user: fc.constantFrom("a", "b"), place: fc.nat(4), on: fc.boolean() }),
  { maxLength: 40 }
)
const changesOf = (list: ReadonlyArray<{ user: string; place: number; on: boolean }>) =>
  list.map(({ on, place, user }): Change => {
    const put = { type: "registration.put", user, at: 0, registrationsMax: max } as const
    const command = on ? put : unregister()
    return { user, place: `${user}${place}`, command }
  })

/** Folds one change. `refused` are the sequences that LOG calls refused, from an earlier run. */
const foldChange = (
  { counts, places }: Store,
  { command, place, user }: Change,
  seq: number,
  refused: Set<number>
): Store => {
  const held = countAt(counts, user, seq, refused.has(seq))
  const { reason, registration } = foldRegistration(places[place], command, seq, held)
  if (reason !== undefined) refused.add(seq)
  return {
    places: { ...places, [place]: registration },
    counts: evolveCounts(counts, user, registration, seq)
  }
}
const emptyStore: Store = { places: {}, counts: noCounts }

describe("any order of limited puts and deletes", () => {
  it("leaves no user more than the limit, and knows since when each is registered", () => {
    fc.assert(
      fc.property(changes, (list) => {
        let store = emptyStore
        for (const [i, change] of changesOf(list).entries()) {
          store = foldChange(store, change, i + 1, new Set())
          for (const user of ["a", "b"]) {
            const since = Object.entries(store.places).flatMap(([place, registration]) =>
              place.startsWith(user) && registration.on ? [registration.since] : []
            )
            assert.deepStrictEqual(
              registeredSince(store.counts, user),
              since.sort((a, b) => a - b)
            )
            assert.isAtMost(since.length, max)
          }
        }
      })
    )
  })

  it("ends alike when a crash lost any part of what one batch changed", () => {
    fc.assert(
      fc.property(
        changes,
        fc.nat(40),
        fc.nat(6),
        fc.nat(10),
        fc.func(fc.boolean()),
        (list, at, length, back, isLost) => {
          const all = changesOf(list)
          const lost = all.slice(at, at + length)
          // A batch never holds two commands for one registration.
          fc.pre(new Set(lost.map(({ place }) => place)).size === lost.length)
          const refused = new Set<number>()
          const run = (from: Store, start: number, end: number) =>
            all
              .slice(start, end)
              .reduce((acc, each, i) => foldChange(acc, each, start + i + 1, refused), from)
          const before = run(emptyStore, 0, at)
          const after = run(before, at, at + length)
          const places = { ...after.places }
          for (const [i, { place }] of lost.entries()) {
            if (!isLost(i)) continue
            const former = before.places[place]
            if (former === undefined) delete places[place]
            else places[place] = former
          }
          const broken = { places, counts: isLost(-1) ? before.counts : after.counts }
          // The facts of the batch are in LOG; the next run begins at some checkpoint before it.
          const again = run(broken, Math.max(0, at - back), all.length)
          assert.deepStrictEqual(again, run(emptyStore, 0, all.length))
        }
      ),
      { numRuns: 2_000 }
    )
  })
})
