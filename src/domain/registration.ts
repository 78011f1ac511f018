// Registrations: a user's place in a channel, and the counts per channel and per user. Pure.
import * as Schema from "effect/Schema"
import { Timestamp } from "./timestamp.ts"

/** `user` is the full user id, which is in no subject. */
export const RegistrationPut = Schema.Struct({
  user: Schema.String,
  at: Timestamp,
  /**
   * The command is rejected when the user has as many already. Part of the message, because all
   * processes that fold it must decide alike, whatever their settings.
   */
  registrationsMax: Schema.optionalKey(Schema.Int)
})
export const RegistrationDelete = Schema.Struct({ user: Schema.String, at: Timestamp })

/**
 * Since when a channel has users, and when its count changed last, as messages said that were
 * erased or are older than the history. Holds for a channel that began at `upTo` or before.
 */
export const ChannelBegun = Schema.Struct({
  since: Schema.Int,
  lastModified: Timestamp,
  upTo: Schema.Int
})

export type RegistrationCommand =
  | ({ readonly type: "registration.put" } & typeof RegistrationPut.Type)
  | ({ readonly type: "registration.delete" } & typeof RegistrationDelete.Type)

/**
 * The value of a key in the bucket `registrations`. With `on` false, the registration ended: the
 * entry tells workers so, and goes after an hour (src/projection/forget.ts).
 */
export interface Registration {
  readonly v: 1
  /** Of the last command that changed it; a put of a registered user changes nothing. */
  readonly seq: number
  /** Sequence since which the user is registered. Earlier broadcasts are not for the user. */
  readonly since: number
  readonly on: boolean
  /**
   * `since` before the last command, if the user was registered, else 0: after a crash, what the
   * user holds follows from both.
   */
  readonly was: number
}

/** The value of `<channel>.registrations` in the bucket `channels`. */
export interface ChannelRegistrations {
  readonly v: 1
  readonly seq: number
  /** Sequence since which somebody is registered. What was counted before is forgotten. */
  readonly since: number
  readonly registrations: number
  /** Milliseconds since the epoch of the last change of the count. */
  readonly lastModified: number
}

export const emptyChannel: ChannelRegistrations = {
  v: 1,
  seq: 0,
  since: 0,
  registrations: 0,
  lastModified: 0
}

/**
 * Says that a channel exists, in the bucket `channels`. Written when the channel begins, removed
 * when it is forgotten, and never replaced: see `isBegun`.
 */
export interface ChannelBegin {
  readonly v: 1
  /** As in {@link ChannelRegistrations}. */
  readonly since: number
}

/**
 * Whether the counts of a channel are those of its present begin. A nats-server 2.15 that is killed
 * brings replaced entries back if their key was removed since; one that was never replaced stays
 * removed. So counts without a begin are of a channel that was forgotten.
 */
export const isBegun = (
  channel: ChannelRegistrations | undefined,
  begin: ChannelBegin | undefined
): channel is ChannelRegistrations => channel !== undefined && channel.since === begin?.since

/** Why the projector rejects a put for which a value that several users share has no room. */
export const sharedIsFull = "a value of several users has no room for this"

/**
 * Folds one command, stored at `seq`, into the registration of a user who has `count` others
 * (Infinity: see {@link countAt}). A command that was folded before changes nothing.
 */
export const foldRegistration = (
  registration: Registration | undefined,
  command: RegistrationCommand,
  seq: number,
  count: number
): { readonly registration: Registration; readonly reason?: string } => {
  if (registration !== undefined && seq <= registration.seq) return { registration }
  const was = registration?.on ? registration.since : 0
  const on = command.type === "registration.put"
  if (on && was > 0) return { registration: registration! }
  if (on && count >= (command.registrationsMax ?? Number.POSITIVE_INFINITY)) {
    return {
      registration: passOverInRegistration(registration, seq),
      reason: Number.isFinite(count)
        ? `the user holds as many registrations as may be: ${command.registrationsMax}`
        : sharedIsFull
    }
  }
  return { registration: { v: 1, seq, since: seq, on, was } }
}

/** As {@link foldRegistration}, for a user without other registrations. */
export const evolveRegistration = (
  registration: Registration | undefined,
  command: RegistrationCommand,
  seq: number
): Registration => foldRegistration(registration, command, seq, 0).registration

/** A rejected command changes only the sequence, which the next command expects. */
export const passOverInRegistration = (
  registration: Registration | undefined,
  seq: number
): Registration => {
  if (registration !== undefined && (registration.on || seq <= registration.seq))
    return registration
  return { v: 1, seq, since: registration?.since ?? seq, on: false, was: 0 }
}

/**
 * Counts one registration change. `registration` is the state right after the command at `seq`. A
 * channel that has counted `seq` is returned unchanged, so that a redelivery after a crash between
 * the two writes counts right. The first registration begins the channel anew: nothing that was
 * counted before shows, whether or not its entries are removed.
 */
export const evolveChannel = (
  channel: ChannelRegistrations,
  registration: Registration,
  command: RegistrationCommand,
  seq: number
): ChannelRegistrations => {
  if (seq <= channel.seq || registration.seq !== seq) return channel
  const change = Number(registration.on) - Number(registration.was > 0)
  if (channel.registrations === 0) {
    if (change <= 0) return channel
    return { v: 1, seq, since: seq, registrations: 1, lastModified: Math.max(1, command.at) }
  }
  // Rejected.
  if (command.type === "registration.put" && !registration.on) return channel
  return {
    v: 1,
    seq,
    since: channel.since,
    registrations: channel.registrations + change,
    lastModified:
      change === 0 ? channel.lastModified : Math.max(channel.lastModified + 1, command.at)
  }
}

/** Counts with what `channel.begun` says of them. With all of LOG they say so themselves. */
export const withBegin = (
  channel: ChannelRegistrations,
  { lastModified, since, upTo }: typeof ChannelBegun.Type
): ChannelRegistrations => {
  if (channel.registrations === 0 || channel.since > upTo) return channel
  const isSame =
    channel.since <= since && channel.lastModified >= lastModified && channel.seq >= upTo
  if (isSame) return channel
  return {
    ...channel,
    since: Math.min(channel.since, since),
    lastModified: Math.max(channel.lastModified, lastModified),
    seq: Math.max(channel.seq, upTo)
  }
}

/**
 * The registrations that users hold: the value of a key that a few users share, in the bucket
 * `registrations`. A key for each user would cost the server 0.4 KB of memory for each user.
 */
export interface RegistrationCounts {
  readonly v: 1
  /** Of the last command of any of these users. */
  readonly seq: number
  /**
   * By user, in the order of their tokens, the sequences since which they are registered, of all
   * channels, ascending. LOG has the channel of each. Users without a registration are not in it.
   */
  readonly users: Readonly<Record<string, ReadonlyArray<number>>>
}

export const noCounts: RegistrationCounts = { v: 1, seq: 0, users: {} }

/** The sequences since which a user is registered, of all channels, ascending. */
export const registeredSince = (
  { users }: RegistrationCounts,
  user: string
): ReadonlyArray<number> => (Object.hasOwn(users, user) ? users[user]! : [])

export const countOf = (counts: RegistrationCounts, user: string): number =>
  registeredSince(counts, user).length

/**
 * Counts the last change of a user's registration, as {@link evolveChannel} does for a channel.
 * Every command moves `seq`, also one that changes nothing.
 */
export const evolveCounts = (
  counts: RegistrationCounts,
  user: string,
  { on, seq: changed, since, was }: Registration,
  seq: number
): RegistrationCounts => {
  if (seq <= counts.seq || changed !== seq) return counts
  if (!on && was === 0) return { ...counts, seq }
  const left = registeredSince(counts, user).filter((each) => each !== was)
  const users = { ...counts.users, [user]: on ? [...left, since] : left }
  const some = Object.entries(users).filter(([, held]) => held.length > 0)
  return { v: 1, seq, users: Object.fromEntries(some.sort(([a], [b]) => (a < b ? -1 : 1))) }
}

/** Bytes of JSON that counts may grow to; a bucket value takes 1,044,480 with its headers. */
const countsBytesMax = 1_000_000

/** Whether counts have room for one more registration, at `seq`. */
const hasRoomAt = ({ users }: RegistrationCounts, seq: number): boolean => {
  const each = String(seq).length + 1
  const bytes = Object.values(users).reduce((sum, held) => sum + 30 + each * held.length, 0)
  return bytes < countsBytesMax
}

/**
 * How many registrations a user holds when the command at `seq` is folded; Infinity: `counts` have
 * no room for another. `counts` may be ahead of the registration that is stored: then the command
 * was decided before, and `wasRefused` tells how.
 */
export const countAt = (
  counts: RegistrationCounts,
  user: string,
  seq: number,
  wasRefused: boolean
): number => {
  const isRefused = counts.seq < seq ? !hasRoomAt(counts, seq) : wasRefused
  if (isRefused) return Number.POSITIVE_INFINITY
  return counts.seq < seq ? countOf(counts, user) : 0
}
