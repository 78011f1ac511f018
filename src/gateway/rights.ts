// What a caller may do, by their principals in the settings, by the grants of a channel, or by the
// rights of their token; and the form of a channel's id in a request.
import * as Effect from "effect/Effect"
import { matchesWildcard } from "#basics/wildcard.ts"
import { Settings } from "#config"
import { isOpen, noPublishers, type WriteRule } from "#domain/publisher.ts"
import type { Caller } from "#identity/identity.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"
import { channelBytesMax, channelToken } from "#streams/tokens.ts"
import { errorIn, type Refused, refuseInvalid } from "./http/response.ts"

/** Whether a caller may publish on a channel. */
export const mayPublish = Effect.fnUntraced(function* (caller: Caller, channel: string) {
  const { rights } = caller
  if (rights !== undefined) return rights.channels.some((each) => matchesWildcard(each, channel))
  const { channelWritePrincipals } = yield* Settings
  if (isNamedBy(channelWritePrincipals, caller, channel)) return true
  return yield* isGranted("principals", caller, channel)
})

/**
 * The patterns of channels on which a caller may publish by the settings or a token.
 * `mayBeGranted`: grants may name further channels.
 */
export const publishPatterns = Effect.fnUntraced(function* ({ principals, rights }: Caller) {
  if (rights !== undefined) return { patterns: rights.channels, mayBeGranted: false }
  const { channelWritePrincipals } = yield* Settings
  const own = channelWritePrincipals.filter(({ principal }) => principals.includes(principal))
  return { patterns: own.map(({ channels }) => channels), mayBeGranted: true }
})

/** Whether a caller may register. A channel is open to everybody unless a setting closes it. */
export const mayRegister = Effect.fnUntraced(function* (caller: Caller, channel: string) {
  const { channelRegisterPrincipals: rules } = yield* Settings
  if (isOpen(rules, channel) || isNamedBy(rules, caller, channel)) return true
  return yield* isGranted("registrars", caller, channel)
})

/** Whether a caller has the right `users`: to name users in a request, and to act for them. */
export const mayUseUsers = Effect.fnUntraced(function* ({ principals, rights }: Caller) {
  if (rights !== undefined) return rights.users
  const { userWritePrincipals } = yield* Settings
  return principals.some((principal) => userWritePrincipals.includes(principal))
})

/** Whether a caller may send to these channels, and may name users if any are named. */
export const maySend = Effect.fnUntraced(function* (
  caller: Caller,
  channels: ReadonlyArray<string>,
  namesUsers: boolean
) {
  if (namesUsers && !(yield* mayUseUsers(caller))) return false
  for (const channel of channels) if (!(yield* mayPublish(caller, channel))) return false
  return true
})

/** `maySend` for many objects of one caller's request, which ask for the same few rights. */
export const remembering = (): typeof maySend => {
  const known = new Map<string, boolean>()
  return Effect.fnUntraced(function* (...[who, channels, users]: Parameters<typeof maySend>) {
    const key = JSON.stringify([channels, users])
    const isAllowed = known.get(key) ?? (yield* maySend(who, channels, users))
    known.set(key, isAllowed)
    return isAllowed
  })
}

/** Whether the settings or a token give a caller a right to publish, on whatever channel. */
export const hasRights = Effect.fnUntraced(function* (caller: Caller) {
  const { principals, rights } = caller
  if (rights !== undefined) return true
  const { channelWritePrincipals } = yield* Settings
  const isNamed = channelWritePrincipals.some(({ principal }) => principals.includes(principal))
  return isNamed || (yield* mayUseUsers(caller))
})

/** Whether a caller sees and stops the broadcasts of everybody. It gives no right to publish. */
export const isOperator = Effect.fnUntraced(function* ({ principals, rights }: Caller) {
  if (rights !== undefined) return rights.operator
  const { operatorPrincipals } = yield* Settings
  return principals.some((principal) => operatorPrincipals.includes(principal))
})

/** The id of the channel in the path of a request. Fails with 400 where it is none. */
export const channelIdOf = (
  params: Readonly<Record<string, string>>
): Effect.Effect<string, Refused> => {
  const id = params["channel"] ?? ""
  if (isChannelId(id)) return Effect.succeed(id)
  return refuseInvalid([errorIn("path", null, invalidChannel)])
}

/** Any text of 1 to 255 bytes; the path of a request has no slash in it. */
export const isChannelId = (id: string): boolean =>
  id !== "" && Buffer.byteLength(id) <= channelBytesMax

/** The description of an error in the id of a channel. */
export const invalidChannel = `Invalid channel id: at most ${channelBytesMax} bytes`

const isNamedBy = (
  rules: ReadonlyArray<WriteRule>,
  { principals }: Caller,
  channel: string
): boolean =>
  rules.some(
    ({ channels, principal }) =>
      principals.includes(principal) && matchesWildcard(channels, channel)
  )

/** Reads the grants at every request, so that a removal takes effect at once. */
const isGranted = Effect.fnUntraced(function* (
  list: "principals" | "registrars",
  { principals }: Caller,
  channel: string
) {
  // The rights of a request are checked before its operation checks the id in the path.
  if (!isChannelId(channel)) return false
  const entry = yield* (yield* Buckets).get("permissions", keys.publishers(channelToken(channel)))
  const granted = (entry?.value ?? noPublishers)[list]
  return principals.some((principal) => granted.includes(principal))
})
