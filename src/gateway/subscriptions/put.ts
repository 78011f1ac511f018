// From a posted body to the command that stores it: what POST and PUT have in common.
import { Effect } from "effect"
import { Settings } from "#config"
import { checkEndpoint, type EndpointPolicy } from "#domain/endpoint.ts"
import {
  evolveList,
  listBytesMax,
  listFits,
  listMarginBytes,
  nextTimestamp,
  type SubscriptionCommand,
  type SubscriptionData,
  type SubscriptionList,
  subscriptionBytesMax
} from "#domain/subscription.ts"
import type { Caller } from "#identity/identity.ts"
import { readBody } from "../http/body.ts"
import { badId, type ErrorDetail, refuse } from "../http/errors.ts"
import { type Preconditions, readPreconditions, stamp } from "../http/preconditions.ts"
import { type Call, ok } from "../http/request.ts"
import type { Decision } from "../write.ts"
import { isId, subscriptionId } from "./id.ts"
import { queryPairs } from "./listing/query.ts"
import { isObject } from "./listing/value.ts"
import { checkAuth, checkP256dh } from "./push-keys.ts"
import { VapidPublicKeys } from "./vapid-public-keys.ts"
import { SubscriptionBody, viewOf } from "./view.ts"

export interface Posted {
  /** Computed from the endpoint: the client cannot choose it. */
  readonly id: string
  /** What the client says the id is. */
  readonly claimed: string | undefined
  readonly data: SubscriptionData
  /** The application server key that the client says it was made with. */
  readonly vapidKey: string | undefined
}

export interface PostInput {
  readonly posted: Posted
  readonly preconditions: Preconditions
}

const decodeBody = readBody(SubscriptionBody)

/**
 * Follows the names into nested objects. A filter would also find a member called "keys.auth":
 * a good key under that name must not stand in for a bad one in `keys`.
 */
const memberOf = (value: unknown, [name, ...rest]: ReadonlyArray<string>): unknown => {
  if (name === undefined) return value
  return isObject(value) && Object.hasOwn(value, name) ? memberOf(value[name], rest) : undefined
}

/**
 * Faults that the schema does not see: an endpoint that is not allowed, a key that no payload can
 * be encrypted for, a VAPID key that this server cannot sign with. Values that the schema refused
 * are skipped.
 */
const ruleErrors = (
  raw: unknown,
  endpoints: EndpointPolicy,
  vapidKeys: ReadonlyArray<string>
): ReadonlyArray<ErrorDetail> => {
  const rules = {
    "data.endpoint": (text: string) => checkEndpoint(text, endpoints),
    "data.keys.auth": checkAuth,
    "data.keys.p256dh": checkP256dh,
    // No push would ever reach it (RFC 8292 section 4.2).
    "data.vapid_public_key": (text: string) =>
      vapidKeys.includes(text) ? undefined : "Must be a VAPID public key of this server"
  }
  return Object.entries(rules).flatMap(([name, rule]) => {
    const value = memberOf(raw, name.split("."))
    const description = typeof value === "string" && value !== "" ? rule(value) : undefined
    return description === undefined ? [] : [{ location: "body", name, description } as const]
  })
}

/** Reads a POST or PUT. */
export const readPosted = Effect.fnUntraced(function* (
  { request, query }: Call,
  errors: Array<ErrorDetail>
) {
  if (queryPairs(query) === undefined) return yield* refuse("undecodable")
  const { allowLoopbackEndpoints, pushHosts } = yield* Settings
  const preconditions = readPreconditions(request, errors)
  const { raw, value } = yield* decodeBody(request, errors)
  const { usable } = yield* VapidPublicKeys
  errors.push(
    ...ruleErrors(raw, { hosts: pushHosts, allowLoopback: allowLoopbackEndpoints }, usable)
  )
  // Without a value there are faults, and with faults nobody looks at the input.
  if (value === undefined) return { preconditions } as PostInput
  const { endpoint, id: claimed, keys, last_modified: _, ...rest } = value.data
  if (claimed !== undefined && !isId(claimed)) errors.push(badId)
  const data = { ...rest, endpoint, keys: { auth: keys.auth, p256dh: keys.p256dh } }
  // Measured as stored: 1e20 takes 4 bytes in a body and 21 when JavaScript writes it.
  if (Buffer.byteLength(JSON.stringify(data)) > subscriptionBytesMax)
    return yield* refuse("subscriptionTooLarge")
  return {
    posted: {
      id: subscriptionId(endpoint),
      claimed,
      data,
      vapidKey: data["vapid_public_key"] as string | undefined
    },
    preconditions
  } as PostInput
})

/** Stores or replaces, within the number of subscriptions that a user may hold. */
export const store = Effect.fnUntraced(function* (
  caller: Caller,
  list: SubscriptionList,
  { data, id, vapidKey: named }: Posted,
  now: number,
  status: number
) {
  const { subscriptionsPerUserMax } = yield* Settings
  const isNew = !Object.hasOwn(list.subscriptions, id)
  if (isNew && Object.keys(list.subscriptions).length >= subscriptionsPerUserMax)
    return yield* refuse("tooManySubscriptions")
  const lastModified = nextTimestamp(list, now)
  // The endpoint names the browser's subscription for good, so one that is replaced was made with the same key as before.
  const vapidKey =
    named ?? (isNew ? (yield* VapidPublicKeys).current : list.subscriptions[id]!.vapidKey)
  const noted = vapidKey === undefined ? {} : { vapidKey }
  const command = {
    type: "subscription.put/1",
    user: caller.id,
    id,
    data,
    ...noted,
    lastModified
  } as const
  // The sequence will be another one, with as many digits at most as the largest.
  if (!listFits(evolveList(list, command, Number.MAX_SAFE_INTEGER), listBytesMax - listMarginBytes))
    return yield* refuse("listTooLarge")
  const decision: Decision<SubscriptionList, SubscriptionCommand> = {
    _tag: "Change",
    command,
    response: (after) => ok({ data: viewOf(after, id) }, stamp(lastModified), status)
  }
  return decision
})
