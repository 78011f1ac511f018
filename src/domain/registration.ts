// A user's place in a channel, and the channel's count of them. Pure.
import { Schema } from "effect"
import { Timestamp } from "./timestamp.ts"

/** `user` is the full user id: it stands only here, never in a subject. */
export const RegistrationPut = Schema.Struct({ user: Schema.String, at: Timestamp })
export const RegistrationDelete = Schema.Struct({ user: Schema.String, at: Timestamp })

export type RegistrationCommand =
  | ({ readonly type: "registration.put/1" } & typeof RegistrationPut.Type)
  | ({ readonly type: "registration.delete/1" } & typeof RegistrationDelete.Type)

/** The value of a key in the bucket `registrations`. Former registrations stay, switched off: their `seq` is what the next command expects. */
export interface Registration {
  readonly v: 1
  readonly seq: number
  /** Sequence since which the user is registered; broadcasts before it are not for them. */
  readonly since: number
  readonly on: boolean
  /** The state before the last command, from which the count's change can be told again after a crash. */
  readonly was: boolean
}

/** The value of `<channel>.registrations` in the bucket `channels`. */
export interface ChannelRegistrations {
  readonly v: 1
  readonly seq: number
  readonly registrations: number
  /** Milliseconds since the epoch of the last change of the count. */
  readonly lastModified: number
}

export const emptyChannel: ChannelRegistrations = {
  v: 1,
  seq: 0,
  registrations: 0,
  lastModified: 0
}

/** Folds one command, stored at `seq`, into the registration. A command that was folded before changes nothing. */
export const evolveRegistration = (
  registration: Registration | undefined,
  command: RegistrationCommand,
  seq: number
): Registration => {
  if (registration !== undefined && seq <= registration.seq) return registration
  const was = registration?.on ?? false
  const on = command.type === "registration.put/1"
  return { v: 1, seq, since: on && was ? (registration?.since ?? seq) : seq, on, was }
}

/** A command that is not obeyed changes nothing but what the next one is appended expecting. */
export const passOverInRegistration = (
  registration: Registration | undefined,
  seq: number
): Registration => {
  if (registration !== undefined && seq <= registration.seq) return registration
  const on = registration?.on ?? false
  return { v: 1, seq, since: registration?.since ?? seq, on, was: on }
}

/**
 * Counts one registration change. `registration` is the state right after the command at `seq`; a channel that has counted `seq`
 * already is returned as it is, so redelivery after a crash between the two writes ends in the right count.
 */
export const evolveChannel = (
  channel: ChannelRegistrations,
  registration: Registration,
  command: RegistrationCommand,
  seq: number
): ChannelRegistrations => {
  if (seq <= channel.seq || registration.seq !== seq) return channel
  const change = Number(registration.on) - Number(registration.was)
  return {
    v: 1,
    seq,
    registrations: channel.registrations + change,
    lastModified:
      change === 0 ? channel.lastModified : Math.max(channel.lastModified + 1, command.at)
  }
}
