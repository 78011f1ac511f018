// Registrations and their count per channel: correct at every point, also after a crash between the
// two writes.
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import {
  type ChannelRegistrations,
  countAt,
  countOf,
  emptyChannel,
  evolveChannel,
  evolveCounts,
  evolveRegistration,
  foldRegistration,
  isRefused,
  noCounts,
  type Registration,
  type RegistrationCommand,
  type RegistrationCounts
} from "#domain/registration.ts"
import { givens } from "#test/given.ts"

const register = (at = 0): RegistrationCommand => ({ type: "registration.put/1", user: "u", at })
const unregister = (at = 0): RegistrationCommand => ({
  type: "registration.delete/1",
  user: "u",
  at
})
const given = givens<Registration | undefined, RegistrationCommand>(evolveRegistration, undefined)

describe("a registration", () => {
  it("begins at the command that switched it on", () => {
    assert.deepStrictEqual(given().when(register()), {
      v: 1,
      seq: 1,
      since: 1,
      on: true,
      was: false
    })
  })

  it("that is repeated began when it was first made, and is not counted again", () => {
    assert.deepStrictEqual(given(register()).when(register()), {
      v: 1,
      seq: 2,
      since: 1,
      on: true,
      was: true
    })
  })

  it("that ends stays, switched off, for the next command to expect its sequence", () => {
    assert.deepStrictEqual(given(register(), register()).when(unregister()), {
      v: 1,
      seq: 3,
      since: 3,
      on: false,
      was: true
    })
  })

  it("that is made again begins anew", () => {
    assert.deepStrictEqual(given(register(), unregister()).when(register()), {
      v: 1,
      seq: 3,
      since: 3,
      on: true,
      was: false
    })
  })

  it("can end without ever having begun", () => {
    assert.deepStrictEqual(given().when(unregister()), {
      v: 1,
      seq: 1,
      since: 1,
      on: false,
      was: false
    })
  })

  it("is not changed by a command that was folded before", () => {
    const { before, when } = given(register(), unregister())
    assert.strictEqual(when(register(), 1), before)
    assert.strictEqual(when(unregister(), 2), before)
  })
})

describe("a channel", () => {
  const on: Registration = { v: 1, seq: 7, since: 7, on: true, was: false }

  it("counts a registration once, and takes its time", () => {
    const counted = evolveChannel(emptyChannel, on, register(50), 7)
    assert.deepStrictEqual(counted, { v: 1, seq: 7, registrations: 1, lastModified: 50 })
    assert.strictEqual(evolveChannel(counted, on, register(50), 7), counted)
  })

  it("moves its timestamp when the count changes and then always forward", () => {
    const counted: ChannelRegistrations = { v: 1, seq: 6, registrations: 3, lastModified: 100 }
    assert.strictEqual(evolveChannel(counted, on, register(50), 7).lastModified, 101)
    assert.deepStrictEqual(evolveChannel(counted, { ...on, was: true }, register(500), 7), {
      ...counted,
      seq: 7
    })
  })

  it("does not count a registration that has moved on since", () => {
    assert.strictEqual(evolveChannel(emptyChannel, { ...on, seq: 9 }, register(), 7), emptyChannel)
  })
})

interface Command {
  readonly user: string
  readonly command: RegistrationCommand
  readonly seq: number
}

/** The two buckets as a projector leaves them. */
interface State {
  readonly places: Readonly<Record<string, Registration>>
  readonly channel: ChannelRegistrations
}
const nothing: State = { places: {}, channel: emptyChannel }

const users = ["a", "b", "c", "d"]
const commands = fc
  .array(
    fc.record({
      user: fc.constantFrom(...users),
      on: fc.boolean(),
      at: fc.nat(100),
      skipped: fc.nat(3)
    }),
    { maxLength: 40 }
  )
  .map((wishes) => {
    let seq = 0
    return wishes.map(({ at, on, skipped, user }): Command => {
      seq += 1 + skipped
      return { user, command: on ? register(at) : unregister(at), seq }
    })
  })

/** One command: the registration is written, then the channel, unless a crash comes first. */
const apply = (
  { channel, places }: State,
  { command, seq, user }: Command,
  crashed = false
): State => {
  const place = evolveRegistration(places[user], command, seq)
  return {
    places: { ...places, [user]: place },
    channel: crashed ? channel : evolveChannel(channel, place, command, seq)
  }
}

const registered = ({ places }: State) => Object.values(places).filter(({ on }) => on).length

describe("any order of register and unregister", () => {
  it("has a count that equals the number of users whose registration is on, at every point", () => {
    fc.assert(
      fc.property(commands, (list) => {
        let state = nothing
        const on = new Set<string>()
        for (const each of list) {
          state = apply(state, each)
          if (each.command.type === "registration.put/1") on.add(each.user)
          else on.delete(each.user)
          assert.strictEqual(state.channel.registrations, on.size)
          assert.strictEqual(registered(state), on.size)
        }
      })
    )
  })

  it("has the right count after a crash between the writes of user and channel", () => {
    fc.assert(
      fc.property(commands, fc.func(fc.boolean()), fc.nat(10), (list, crashes, back) => {
        let state = nothing
        for (const [i, each] of list.entries()) {
          const before = state
          if (crashes(i)) {
            const broken = apply(state, each, true)
            // The next projector begins at a checkpoint somewhere before.
            state = list
              .slice(Math.max(0, i - back), i + 1)
              .reduce((acc, again) => apply(acc, again), broken)
          } else state = apply(state, each)
          assert.deepStrictEqual(state, apply(before, each))
          assert.strictEqual(state.channel.registrations, registered(state))
        }
      })
    )
  })

  it("has the right count after a crash that lost the channel's write for several users", () => {
    fc.assert(
      fc.property(commands, fc.nat(40), fc.nat(4), (list, at, length) => {
        const lost = list.slice(at, at + length)
        // A batch never holds two commands for one registration.
        fc.pre(new Set(lost.map(({ user }) => user)).size === lost.length)
        const before = list.slice(0, at).reduce((acc, each) => apply(acc, each), nothing)
        const broken = lost.reduce((acc, each) => apply(acc, each, true), before)
        assert.deepStrictEqual(
          list.reduce((acc, each) => apply(acc, each), broken),
          list.reduce((acc, each) => apply(acc, each), nothing)
        )
      })
    )
  })

  it("gives the same state however much of it is delivered again", () => {
    fc.assert(
      fc.property(commands, fc.nat(40), fc.nat(40), (list, a, b) => {
        const last = list.reduce((acc, each) => apply(acc, each), nothing)
        const again = list.slice(Math.min(a, b), Math.max(a, b))
        assert.deepStrictEqual(
          again.reduce((acc, each) => apply(acc, each), last),
          last
        )
      })
    )
  })

  it("keeps the timestamp of the channel strictly increasing with each change of the count", () => {
    fc.assert(
      fc.property(commands, (list) => {
        let state = nothing
        for (const each of list) {
          const { channel } = state
          state = apply(state, each)
          if (state.channel.registrations === channel.registrations)
            assert.strictEqual(state.channel.lastModified, channel.lastModified)
          else assert.isAbove(state.channel.lastModified, channel.lastModified)
        }
      })
    )
  })

  it("keeps since at the sequence of the last change to on", () => {
    fc.assert(
      fc.property(commands, (list) => {
        let state = nothing
        const since = new Map<string, number>()
        for (const each of list) {
          if (each.command.type === "registration.delete/1") since.delete(each.user)
          else if (!since.has(each.user)) since.set(each.user, each.seq)
          state = apply(state, each)
          const place = state.places[each.user]
          if (place?.on) assert.strictEqual(place.since, since.get(each.user))
        }
      })
    )
  })
})

describe("a limited put", () => {
  const limited = { type: "registration.put/1", user: "u", at: 0, registrationsMax: 2 } as const

  it("is rejected when the user holds the maximum, and changes only the expected sequence", () => {
    const { reason, registration } = foldRegistration(undefined, limited, 7, 2)
    assert.strictEqual(reason, "the user holds as many registrations as may be: 2")
    assert.deepStrictEqual(registration, { v: 1, seq: 7, since: 7, on: false, was: false })
    assert.isTrue(isRefused(registration, 7))
    assert.strictEqual(evolveChannel(emptyChannel, registration, limited, 7), emptyChannel)
  })

  it("of a registration that is held is no new one", () => {
    const held = evolveRegistration(undefined, limited, 1)
    const { reason, registration } = foldRegistration(held, limited, 2, 2)
    assert.isUndefined(reason)
    assert.isTrue(registration.on)
    assert.isFalse(isRefused(registration, 2))
  })

  it("is not called refused when it was taken and ended since", () => {
    const held = evolveRegistration(undefined, limited, 1)
    assert.isFalse(isRefused(evolveRegistration(held, unregister(), 2), 1))
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
    const put = { type: "registration.put/1", user, at: 0, registrationsMax: max } as const
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
  it("leaves no user more than the limit, and counts what each holds", () => {
    fc.assert(
      fc.property(changes, (list) => {
        let store = emptyStore
        for (const [i, change] of changesOf(list).entries()) {
          store = foldChange(store, change, i + 1, new Set())
          for (const user of ["a", "b"]) {
            const on = Object.entries(store.places).filter(
              ([place, registration]) => place.startsWith(user) && registration.on
            ).length
            assert.strictEqual(countOf(store.counts, user), on)
            assert.isAtMost(on, max)
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
