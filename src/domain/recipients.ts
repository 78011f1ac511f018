// To whom a broadcast goes: everybody on some channels, and single users. Pure.
import * as Schema from "effect/Schema"
import {
  type ChannelToken,
  isChannelToken,
  isInShard,
  isUserToken,
  type UserToken
} from "#streams/tokens.ts"
import { BroadcastBody } from "./broadcast.ts"

const Channels = Schema.Array(Schema.String.pipe(Schema.refine(isChannelToken)))
const Users = Schema.Array(Schema.String.pipe(Schema.refine(isUserToken)))

export const channelsMax = 100
/** Of those to whom a broadcast goes, and of those excepted. */
export const usersMax = 1_000

/** Each list without duplicates. */
export interface Recipients {
  readonly channels: ReadonlyArray<ChannelToken>
  readonly users: ReadonlyArray<UserToken>
  /** Get nothing, although they are registered on a channel. */
  readonly except: ReadonlyArray<UserToken>
}

/** Some of the recipients: those that fit into one message. */
export const DirectPart = Schema.Struct({
  channels: Schema.optionalKey(Channels),
  users: Schema.optionalKey(Users),
  except: Schema.optionalKey(Users)
})
type DirectPart = typeof DirectPart.Type

/** A broadcast to several channels or to users. */
export const Direct = Schema.Struct({
  ...BroadcastBody.fields,
  ...DirectPart.fields,
  /** Sequences of the messages with the recipients, where these do not fit into this message. */
  parts: Schema.optionalKey(Schema.Array(Schema.Int))
})

/**
 * Bytes of the recipients in one message. With a payload and its headers it fits into a message of
 * LOG (32 KiB).
 */
const partBytesMax = 24 * 1024

/** Cuts recipients into parts of messages. */
export const partsOf = (recipients: Recipients): ReadonlyArray<DirectPart> => {
  const parts: Array<Record<string, Array<string>>> = [{}]
  let bytes = 0
  for (const [name, tokens] of Object.entries<ReadonlyArray<string>>({ ...recipients }))
    for (const token of tokens) {
      bytes += `"${token}",`.length
      if (bytes > partBytesMax) {
        parts.push({})
        bytes = token.length
      }
      const part = parts.at(-1)!
      const list = part[name] ?? []
      list.push(token)
      part[name] = list
    }
  return parts as ReadonlyArray<DirectPart>
}

/** Recipients of the parts together. */
export const joined = (parts: ReadonlyArray<DirectPart>): Recipients => ({
  channels: parts.flatMap(({ channels = [] }) => channels),
  users: parts.flatMap(({ users = [] }) => users),
  except: parts.flatMap(({ except = [] }) => except)
})

/** The users of a shard, each once. `registered`: those on its channels. */
export const usersIn = (
  { except, users }: Recipients,
  shard: string,
  registered: Iterable<UserToken>
): ReadonlyArray<UserToken> => {
  const found = new Set(users.filter((user) => isInShard(user, shard)))
  for (const user of registered) found.add(user)
  for (const user of except) found.delete(user)
  return [...found]
}
