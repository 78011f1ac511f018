// To whom a broadcast goes: everybody on some channels, and single users. Pure.
import * as Schema from "effect/Schema"
import {
  type ChannelToken,
  isChannelToken,
  isInShard,
  isUserToken,
  type UserToken
} from "#streams/tokens.ts"
import { BroadcastBody, Parts } from "./broadcast.ts"

const Channels = Schema.Array(Schema.String.pipe(Schema.refine(isChannelToken)))
const Users = Schema.Array(Schema.String.pipe(Schema.refine(isUserToken)))

const SubscriptionId = Schema.String.pipe(Schema.check(Schema.isPattern(/^[A-Za-z0-9_-]{1,64}$/u)))

export const channelsMax = 100
/** Users to whom a broadcast goes, and users whom it excepts: so many each. */
export const usersMax = 1_000

/** Each list without duplicates. */
export interface Recipients {
  readonly channels: ReadonlyArray<ChannelToken>
  readonly users: ReadonlyArray<UserToken>
  /** Get nothing, although they are registered on a channel. */
  readonly except: ReadonlyArray<UserToken>
  /** The only subscription of the users that gets a push: the broadcast is a test of it. */
  readonly subscription?: string
}

/** Some of the recipients and variants: those that fit into one message. */
export const DirectPart = Schema.Struct({
  data_by_locale: BroadcastBody.fields.data_by_locale,
  channels: Schema.optionalKey(Channels),
  users: Schema.optionalKey(Users),
  except: Schema.optionalKey(Users)
})
export type DirectPart = typeof DirectPart.Type

/** A broadcast to several channels or to users. */
export const Direct = Schema.Struct({
  ...BroadcastBody.fields,
  ...DirectPart.fields,
  subscription: Schema.optionalKey(SubscriptionId),
  /** Those behind the first part, which this message has, in their order. */
  parts: Schema.optionalKey(Parts)
})

/**
 * Bytes of recipients and variants in one message. With `data` and its headers it fits into a
 * message of LOG (32 KiB).
 */
const partBytesMax = 24 * 1024

/**
 * Cuts recipients and variants into parts of messages. Variants come last, in the order of their
 * tags: with the first of them, a reader has all recipients, and reads no further parts to know
 * them, and lists show the first one.
 */
export const partsOf = (
  { channels, except, users }: Recipients,
  data_by_locale: BroadcastBody["data_by_locale"] = {}
): ReadonlyArray<DirectPart> => {
  type Part = Record<string, Array<unknown> | Record<string, unknown>>
  const parts: Array<Part> = [{}]
  let bytes = 0
  const variants = Object.fromEntries(sortedVariants(data_by_locale))
  for (const [name, whole] of Object.entries({ channels, users, except, data_by_locale: variants }))
    for (const [key, item] of Object.entries<unknown>(whole)) {
      const size = Buffer.byteLength(JSON.stringify({ [key]: item }))
      if (bytes + size > partBytesMax) {
        parts.push({})
        bytes = 0
      }
      bytes += size
      const part = parts.at(-1)!
      const held = part[name] ?? (Array.isArray(whole) ? [] : {})
      part[name] = held
      if (Array.isArray(held)) held.push(item)
      else held[key] = item
    }
  return parts as ReadonlyArray<DirectPart>
}

/** The recipients in some parts of a broadcast. */
export const recipientsIn = (parts: ReadonlyArray<DirectPart>): Recipients => ({
  channels: parts.flatMap(({ channels = [] }) => channels),
  users: parts.flatMap(({ users = [] }) => users),
  except: parts.flatMap(({ except = [] }) => except)
})

/** The variants in some parts of a broadcast. */
export const variantsIn = (
  parts: ReadonlyArray<DirectPart>
): NonNullable<BroadcastBody["data_by_locale"]> =>
  Object.fromEntries(parts.flatMap(({ data_by_locale = {} }) => Object.entries(data_by_locale)))

type Variants = NonNullable<BroadcastBody["data_by_locale"]>

const sortedVariants = (variants: Variants) =>
  Object.entries(variants).sort(([a], [b]) => (a < b ? -1 : 1))

/**
 * The data that stands for a broadcast where one is shown: `data`, or the first variant in the
 * order of the tags. Undefined: its pushes carry no payload.
 */
export const firstData = ({
  data,
  data_by_locale = {}
}: Pick<BroadcastBody, "data" | "data_by_locale">): BroadcastBody["data"] =>
  [data, ...sortedVariants(data_by_locale).map(([, variant]) => variant)].find(
    (each) => each !== undefined && Object.keys(each).length > 0
  )

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
