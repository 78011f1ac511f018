// Old messages of registrations and of broadcasts that may go from LOG: after each deletion the
// fold is the same, and so is every fold of what comes later.
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import {
  type ChannelRests,
  type Past,
  unneededOfBroadcast,
  unneededOfRegistration
} from "#domain/history.ts"
import type { Message } from "#domain/messages/table.ts"
import {
  type ChannelRegistrations,
  emptyChannel,
  evolveChannel,
  evolveRegistration,
  type Registration,
  type RegistrationCommand,
  withBegin
} from "#domain/registration.ts"

const past = (seq: number, message: Message): Past => ({ seq, at: seq * 1_000, message })
const none: ReadonlySet<number> = new Set()

interface Joined {
  readonly user: string
  readonly on: boolean
  readonly millis: number
}

interface OfChannel extends Past {
  /** Empty: `channel.begun`. */
  readonly user: string
}

const foldChannel = (log: ReadonlyArray<OfChannel>) => {
  const registrations = new Map<string, Registration>()
  let channel: ChannelRegistrations = emptyChannel
  for (const { message, seq, user } of log) {
    if (message.type === "channel.begun") {
      channel = withBegin(channel, message)
      continue
    }
    const command = message as RegistrationCommand
    const next = evolveRegistration(registrations.get(user), command, seq)
    registrations.set(user, next)
    channel = evolveChannel(channel, next, command, seq)
  }
  return { channel, registrations }
}

/** The messages that the counts rest on, as the buckets say. */
const restsOf = ({ registrations, seq, since }: ChannelRegistrations): ChannelRests =>
  registrations === 0 ? { since: Number.POSITIVE_INFINITY, changed: 0 } : { since, changed: seq }

const shown = (log: ReadonlyArray<OfChannel>) => {
  const { channel, registrations } = foldChannel(log)
  const on = [...registrations].filter(([, each]) => each.on).sort()
  // Without a registration a channel has no entry.
  return JSON.stringify([on, channel.registrations === 0 ? undefined : channel])
}

const membersAt = (log: ReadonlyArray<OfChannel>, seq: number) => {
  const { registrations } = foldChannel(log.filter((each) => each.seq <= seq))
  const members = [...registrations].filter(([, { on }]) => on)
  return members
    .map(([user, { since }]) => `${user} ${since}`)
    .sort()
    .join()
}

describe("any history of a channel", () => {
  it("has the same registrations and counts after each deletion", () => {
    let deleted = 0
    let counted = 0
    const joined = fc.record({
      user: fc.constantFrom("a", "b", "c", "d", "e"),
      on: fc.boolean(),
      millis: fc.constantFrom(0, 5, 2_000)
    })
    const check = (steps: ReadonlyArray<Joined>, cut: number, now: number) => {
      let at = 1
      const commands = steps.map(({ millis, on, user }, i): OfChannel => {
        at += millis
        const type = on ? "registration.put" : "registration.delete"
        // Between the two parts there is room for `channel.begun`.
        return { ...past(i < now ? i + 1 : i + 2, { type, user, at } as Message), user }
      })
      const before = cut * 1_000
      let log: ReadonlyArray<OfChannel> = commands.slice(0, now)
      const later = commands.slice(now)
      const { channel } = foldChannel(log)
      const all = [...log, ...later]
      const [whole, wholeLater] = [shown(log), shown(all)]
      const begun = { lastModified: channel.lastModified, since: channel.since, upTo: channel.seq }
      const kept = { ...past(log.length + 1, { type: "channel.begun", ...begun }), user: "" }
      if (channel.registrations > 0) log = [...log, kept]
      for (const user of ["a", "b", "c", "d", "e"]) {
        const messages = log.filter((each) => each.user === user)
        const rests = { messages, rejected: none, before, channel: restsOf(channel) }
        const { countedUpTo, seqs } = unneededOfRegistration(rests)
        assert.isAtMost(countedUpTo, channel.registrations > 0 ? channel.seq : 0)
        if (countedUpTo > 0) counted++
        for (const seq of seqs) {
          deleted++
          log = log.filter((each) => each.seq !== seq)
          assert.equal(shown(log), whole)
          assert.equal(shown([...log, ...later]), wholeLater)
        }
      }
      // At each moment of the history.
      for (let seq = cut; seq <= all.length; seq++)
        assert.equal(membersAt([...log, ...later], seq), membersAt(all, seq))
    }
    const histories = fc.property(
      fc.array(joined, { maxLength: 40 }),
      fc.nat(42),
      fc.nat(40),
      check
    )
    fc.assert(histories, { numRuns: 3_000, seed: 5 })
    assert.isAbove(counted, 200)
    assert.isAbove(deleted, 3_000)
  })
})

describe("a registration", () => {
  const join = (seq: number) =>
    past(seq, { type: "registration.put", user: "anna", at: seq * 1_000 })
  const leave = (seq: number) =>
    past(seq, { type: "registration.delete", user: "anna", at: seq * 1_000 })
  const of = (messages: ReadonlyArray<Past>, more: Partial<ChannelRests> = {}) =>
    unneededOfRegistration({
      messages,
      rejected: none,
      before: 80_000,
      channel: { since: 1, changed: 90, ...more }
    })

  it("that stands keeps its put and its last message", () => {
    const { countedUpTo, seqs } = of([join(2), leave(3), join(4), join(5), join(6)])
    assert.deepEqual([seqs, countedUpTo], [[5, 2, 3], 3])
  })

  it("that ended goes, once a message says what counts rested on it", () => {
    const ended = [join(2), leave(3)]
    assert.deepEqual(of(ended), { seqs: [2, 3], countedUpTo: 3 })
    assert.deepEqual(of(ended, { changed: 3 }), { seqs: [2, 3], countedUpTo: 3 }, "the last change")
    assert.deepEqual(of(ended, { since: 4 }), { seqs: [2, 3], countedUpTo: 0 }, "an earlier begin")
  })

  it("that ended lately keeps its put, too", () => {
    assert.deepEqual(of([join(2), leave(81)]).seqs, [])
  })
})

describe("a broadcast", () => {
  const state = past(4, {
    type: "broadcast.cancelled",
    ...{ broadcast: 3, channel: "news", run: 0, by: "anna", at: 4 }
  })
  const part = past(2, { type: "direct.part" })
  const origin = past(3, { type: "direct", parts: [2] })
  const end = past(9, {
    type: "broadcast.rejected",
    ...{ broadcast: 3, subject: "", reason: "", at: 9 }
  })
  const of = (before: number) =>
    unneededOfBroadcast({ origin, parts: [part], changes: [state], end, before })

  it("goes as a whole: before its parts, and with its end last", () => {
    assert.deepEqual(of(10_000), [3, 2, 4, 9])
  })

  it("stays as a whole while its end is not old", () => {
    assert.deepEqual(of(9_000), [])
  })
})
