// Registrations and their count in any order of commands, also after a crash between two writes.
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import {
  type ChannelRegistrations,
  emptyChannel,
  evolveChannel,
  evolveRegistration,
  type Registration,
  type RegistrationCommand
} from "#domain/registration.ts"
import { register, unregister } from "#test/registration-commands.ts"

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

/** What is stored when a channel that nobody is registered on is forgotten. */
const forgotten = (state: State): State =>
  state.channel.registrations === 0 ? { ...state, channel: emptyChannel } : state

const registered = ({ places }: State) => Object.values(places).filter(({ on }) => on).length

describe("any order of register and unregister", () => {
  it("has a count that equals the number of users whose registration is on, at every point", () => {
    fc.assert(
      fc.property(commands, (list) => {
        let state = nothing
        const on = new Set<string>()
        for (const each of list) {
          state = apply(state, each)
          if (each.command.type === "registration.put") on.add(each.user)
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

  it("counts alike whether or not the channel is forgotten each time that everybody left", () => {
    fc.assert(
      fc.property(commands, fc.func(fc.boolean()), (list, isForgotten) => {
        let [state, other] = [nothing, nothing]
        for (const [i, each] of list.entries()) {
          state = apply(state, each)
          other = apply(other, each)
          if (isForgotten(i)) other = forgotten(other)
          assert.deepStrictEqual(forgotten(other), forgotten(state))
        }
      })
    )
  })

  it("moves the timestamp of a channel forward with each change of the count", () => {
    fc.assert(
      fc.property(commands, (list) => {
        let state = nothing
        for (const each of list) {
          const { channel } = state
          state = apply(state, each)
          if (channel.registrations === 0 && state.channel.registrations === 1)
            assert.strictEqual(state.channel.lastModified, Math.max(1, each.command.at))
          else if (state.channel.registrations === channel.registrations)
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
          if (each.command.type === "registration.delete") since.delete(each.user)
          else if (!since.has(each.user)) since.set(each.user, each.seq)
          state = apply(state, each)
          const place = state.places[each.user]
          if (place?.on) assert.strictEqual(place.since, since.get(each.user))
        }
      })
    )
  })
})
