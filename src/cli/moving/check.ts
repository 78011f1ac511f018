// Checks a line of an import, as the gateway checks a request. No reason quotes an endpoint or key.
import type { SubscriptionData } from "#domain/subscription/command.ts"
import type { EndpointPolicy } from "#domain/subscription/endpoint.ts"
import { endpointHash } from "#domain/subscription/owners.ts"
import { standInOf } from "#domain/subscription/stand-in.ts"
import { checkedData } from "#gateway/subscriptions/form.ts"
import type { User } from "#identity/identity.ts"
import { userTextOf } from "#identity/principals.ts"
import { type ChannelToken, channelToken, isChannelToken } from "#streams/tokens.ts"
import { type NoSubscription, type ParsedLine, parseLine } from "./line.ts"

/** A subscription to be stored. */
export interface Checked {
  readonly id: string
  readonly data: SubscriptionData
  readonly vapidKey: string
  /** A user of a policy, or a stand-in. */
  readonly user: User
  readonly channels: ReadonlyArray<ChannelToken>
}

export interface Rules {
  readonly endpoints: EndpointPolicy
  /** The keys that subscriptions may be made with. */
  readonly vapidKeys: ReadonlyArray<string>
  /** The key of lines that name none. */
  readonly vapidKey: string | undefined
  /** The policy of the users of all lines. Undefined: lines name it. */
  readonly policy: string | undefined
  /** Channels of every line, beside its own. */
  readonly channels: ReadonlyArray<string>
  readonly channelsMax: number
  readonly users: {
    readonly find: (id: string) => User | string
    readonly named: (id: string) => User
  }
}

const userOf = (given: unknown, id: string, { policy, users }: Rules): User | string => {
  if (given === undefined) return users.named(standInOf(id))
  const name = userTextOf(given)
  if (typeof name !== "string") return "Must be a string"
  return users.find(policy === undefined ? name : `${policy}:${name}`)
}

/** Names of channels as they stand in subjects; undefined: one of them is none. */
export const tokensOf = (names: unknown): ReadonlyArray<ChannelToken> | undefined => {
  if (!Array.isArray(names) || names.some((name) => typeof name !== "string")) return undefined
  const tokens = [...new Set(names)].map(channelToken)
  return tokens.every(isChannelToken) ? tokens : undefined
}

const dataOf = ({ data }: ParsedLine, { endpoints, vapidKey, vapidKeys }: Rules) => {
  const key = vapidKey === undefined ? {} : { vapid_public_key: vapidKey }
  const checked = checkedData({ ...key, ...data }, endpoints, vapidKeys)
  return "endpoint" in checked
    ? checked
    : checked.map(({ description, name }) => `${name?.replace(/^data\./, "")}: ${description}`)
}

/** The subscription of a line, or why there is none. */
export const check = (text: string, rules: Rules): Checked | NoSubscription => {
  const parsed = parseLine(text)
  if (!("data" in parsed)) return parsed
  const data = dataOf(parsed, rules)
  if (!("endpoint" in data)) return { refused: data.join("; ") }
  const vapidKey = data["vapid_public_key"]
  if (typeof vapidKey !== "string")
    return { refused: "vapid_public_key: name it in the line, or by --vapid-public-key" }
  const id = endpointHash(data.endpoint)
  const user = userOf(parsed.user, id, rules)
  if (typeof user === "string") return { refused: `user: ${user}` }
  const own = tokensOf(parsed.channels ?? [])
  if (own === undefined) return { refused: "channels: Expected an array of names of channels" }
  const channels = [...new Set([...rules.channels.map(channelToken), ...own])]
  return channels.length > rules.channelsMax
    ? { refused: `channels: at most ${rules.channelsMax}` }
    : { id, data, vapidKey, user, channels }
}
