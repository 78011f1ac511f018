// Whether a broadcast was for a user, and why or why not, by what LOG had when it started.
import * as Effect from "effect/Effect"
import type { ForUser } from "#broadcasts/pushes.ts"
import { isFinal } from "#broadcasts/state.ts"
import { readRecipients } from "#broadcasts/whole-broadcast.ts"
import type { Recipients } from "#domain/recipients.ts"
import { takes } from "#domain/subscription/subscription.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { type ChannelToken, decodeToken, type UserToken } from "#streams/tokens.ts"
import { isInWork } from "./broadcasts.ts"
import { erasureOf, listsOf, registrationsOf } from "./past.ts"

/** Whether and why a broadcast was for a user. */
export interface Reason {
  /** Whether a push should have gone to the user; absent: that is no longer stored. */
  readonly should?: boolean
  readonly why: string
  /** Ids of the subscriptions that it should have gone to; absent: `should` is. */
  readonly devices?: ReadonlyArray<string>
}

/**
 * Returns a function that says whether and why a broadcast was for a user. `seq`: only what LOG had
 * up to this message counts.
 */
export const makeReason = Effect.fnUntraced(function* (user: UserToken, seq: number) {
  const log = yield* EventLog
  const erasure = yield* erasureOf(user)
  const listAt = yield* listsOf(user)
  const known = new Map<ChannelToken, Effect.Success<ReturnType<typeof registrationsOf>>>()
  const registered = Effect.fnUntraced(function* (channel: ChannelToken, seq: number) {
    const at = known.get(channel) ?? (yield* registrationsOf(channel, user))
    known.set(channel, at)
    return at(seq)
  })

  /** By what a broadcast that started at a sequence was for the user; undefined: by nothing. */
  const ground = Effect.fnUntraced(function* (
    channels: ReadonlyArray<ChannelToken>,
    isNamed: boolean,
    start: number
  ) {
    if (isNamed) return "the broadcast names the user"
    for (const channel of channels) {
      const began = yield* registered(channel, start)
      if (began === undefined) continue
      const since = new Date(began.at).toISOString()
      return `registered on ${decodeToken(channel) ?? channel} since ${since}`
    }
    return undefined
  })

  /** The reason by the registrations and devices that the user had at the start. */
  const had = Effect.fnUntraced(function* (found: ForUser, to: Recipients, start: number) {
    const { origin, standing } = found
    const why = yield* ground(to.channels, to.users.includes(user), start)
    if (why === undefined) return not("not registered when it started")
    const devices = Object.entries(listAt(start).subscriptions)
      .filter(([id, stored]) => takes(stored, start) && (to.subscription ?? id) === id)
      .map(([id]) => id)
    if (devices.length === 0) return not(`${why}, but had no device that takes pushes`)
    if (origin.source === "redrive") return yield* again(found, why)
    const end = standing.state === "cancelled" ? "; the broadcast was cancelled later" : ""
    return { should: true, why: `${why}${end}`, devices } satisfies Reason
  })

  return Effect.fnUntraced(function* (found: ForUser) {
    const start = yield* startOrWhy(log, found, seq)
    if (typeof start === "string") return not(start)
    const to = yield* readRecipients(log, found.origin.stored)
    if (to === undefined) return not("LOG lacks a part of the broadcast")
    if (to.except.includes(user)) return not("the broadcast excepts the user")
    if (erasure !== undefined && start <= erasure.seq) return erasedLater
    return yield* had(found, to, start)
  })
})

/** A redrive leaves out whom the broadcast before reached, which WORK says for some weeks. */
const again = Effect.fnUntraced(function* ({ origin, pushes, standing }: ForUser, why: string) {
  const devices = [...new Set(pushes.map(({ subscription }) => subscription))]
  if (devices.length > 0) return { should: true, why, devices } satisfies Reason
  const isKnown = isFinal(standing) && (yield* isInWork(origin.channel, origin.stored.seq))
  return isKnown ? not("sent again to those whose push had failed") : redriven
})

const redriven: Reason = {
  why: "sent again to those whose push had failed: who they were is no longer stored"
}

const erasedLater: Reason = { why: "the user was erased since" }

const not = (why: string): Reason => ({ should: false, why, devices: [] })

/** The sequence of LOG at which a broadcast started, or why it had not. */
const startOrWhy = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  { origin, standing }: Pick<ForUser, "origin" | "standing">,
  seq: number
) {
  if (standing.rejected !== undefined) return "the broadcast was rejected"
  const start = yield* startSeqOf(log, origin.stored.seq, standing.schedule !== undefined)
  if (start === undefined) return "the broadcast did not start"
  return start > seq ? "the broadcast had not started then" : start
})

/** The sequence of LOG at which a broadcast started; undefined: it did not. */
const startSeqOf = Effect.fnUntraced(function* (
  { following }: EventLog["Service"],
  broadcast: number,
  isScheduled: boolean
) {
  if (!isScheduled) return broadcast
  for (let from = broadcast; ; ) {
    const changes = yield* following("log", subjects.state(broadcast), { from, limit: readAtOnce })
    const start = changes.find(({ message }) => message.type === "broadcast.started")
    if (start !== undefined || changes.length === 0) return start?.seq
    from = changes.at(-1)!.seq + 1
  }
})

/** Changes of one broadcast that are read at once: one with a payload has up to 32 KiB. */
const readAtOnce = 100
