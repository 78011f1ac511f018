// A line of an import: read from its file, parsed, and checked as the gateway checks a request. It
// is a subscription as browsers and the package web-push write it, or a row of OneSignal's CSV
// export, as JSON. No reason quotes an endpoint or key.

import { isObject, type JsonObject, parseWhole } from "#basics/json.ts"
import { isLocale } from "#domain/broadcast.ts"
import type { SubscriptionData } from "#domain/subscription/command.ts"
import { standInOf } from "#domain/subscription/command.ts"
import type { EndpointPolicy } from "#domain/subscription/endpoint.ts"
import { endpointHash } from "#domain/subscription/owners.ts"
import { checkedData } from "#gateway/subscriptions/form.ts"
import type { User } from "#identity/identity.ts"
import { userTextOf } from "#identity/principals.ts"
import { type ChannelToken, channelToken, isChannelToken } from "#streams/tokens.ts"

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

const dataOf = ({ data }: ParsedLine, { endpoints, vapidKey, vapidKeys }: Rules) => {
  const key = vapidKey === undefined ? {} : { vapid_public_key: vapidKey }
  const checked = checkedData({ ...key, ...data }, endpoints, vapidKeys)
  return "endpoint" in checked
    ? checked
    : checked.map(({ description, name }) => `${name?.replace(/^data\./, "")}: ${description}`)
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

/**
 * The subscription of a line. Its id and timestamp are those of another store, where they may be
 * anything.
 */
const parseLine = (text: string): ParsedLine | NoSubscription => {
  const parsed = parseWhole(text)
  if (typeof parsed !== "string" && "loss" in parsed) return { refused: parsed.loss }
  const json = typeof parsed === "string" ? undefined : parsed.json
  if (!isObject(json)) return { refused: "Expected a JSON object" }
  if (Object.hasOwn(json, "identifier") && !Object.hasOwn(json, "endpoint"))
    return parseOneSignal(json)
  const { channels, id: _, last_modified: __, user, ...data } = json
  return { data, user: cellOf(user), channels: cellOf(channels) }
}

const parseOneSignal = (row: JsonObject): ParsedLine | NoSubscription => {
  const { external_user_id: user, identifier, language, web_auth: auth, web_p256: p256dh } = row
  if (isUnsubscribed(row)) return { passed: "skipped" }
  // Apps have a token there, browsers an address.
  if (!isText(auth) || !isText(p256dh))
    return { passed: /^https?:/.test(String(identifier)) ? "keyless" : "skipped" }
  const key = cellOf(row["vapid_public_key"])
  const data = {
    endpoint: identifier,
    keys: { auth, p256dh },
    ...(isText(language) && isLocale(language) ? { locale: language } : {}),
    ...(key === undefined ? {} : { vapid_public_key: key })
  }
  return { data, user: cellOf(user), channels: cellOf(row["channels"]) }
}

interface ParsedLine {
  /** The subscription, unchecked. */
  readonly data: JsonObject
  /** The user and the channels that the line names, unchecked. */
  readonly user: unknown
  readonly channels: unknown
}

/**
 * A line without a subscription. refused: why. passed: why it is passed over: "skipped" is a row of
 * an app or of a browser that left, "keyless" one of a browser whose keys were not exported.
 */
type NoSubscription = { readonly refused: string } | { readonly passed: "skipped" | "keyless" }

const isText = (value: unknown): value is string => typeof value === "string" && value !== ""

/** Empty cells of a CSV file are no values. */
const cellOf = (cell: unknown): unknown => (cell === "" || cell === null ? undefined : cell)

/** Whether a row says that its browser takes no pushes any more: OneSignal exports these, too. */
const isUnsubscribed = (row: JsonObject): boolean => {
  const type = cellOf(row["notification_types"])
  const isOff = /^(t|true)$/i.test(String(row["invalid_identifier"]))
  return isOff || (type !== undefined && Number(type) <= 0)
}

export interface Line {
  /** From 1 on. */
  readonly number: number
  /** Undefined: the line is too long. */
  readonly text: string | undefined
}

/** The lines of a text that comes in parts. Keeps no more of a line than it may have. */
export async function* linesOf(input: AsyncIterable<string>): AsyncGenerator<Line, void> {
  let number = 0
  let rest = ""
  let isLong = false
  const lineOf = (part: string): Line => {
    const text = isLong || part.length > lineMax ? undefined : part
    isLong = false
    number += 1
    return { number, text: number === 1 ? text?.replace(/^\uFEFF/, "") : text }
  }
  for await (const chunk of input) {
    const parts = (rest + chunk).split("\n")
    rest = parts.pop()!
    for (const part of parts) yield lineOf(part)
    if (rest.length <= lineMax) continue
    isLong = true
    rest = ""
  }
  if (rest !== "" || isLong) yield lineOf(rest)
}

/** Characters of a line. A subscription has at most 4 KiB, and 200 names of channels 50 KiB. */
const lineMax = 65_536
