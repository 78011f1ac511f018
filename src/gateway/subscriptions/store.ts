// How POST, PUT and a renewal store a subscription: the read of the body, the decision within the
// quotas of the user, and the secret by which a service worker, which has no login, renews it.
import { createHash, randomBytes } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Settings } from "#config"
import type { SubscriptionCommand, SubscriptionData } from "#domain/subscription/command.ts"
import { hasSameKeys } from "#domain/subscription/command.ts"
import { atEndpoint, endpointHash, hasRoomFor, ownerOf } from "#domain/subscription/owners.ts"
import {
  evolveList,
  exhausted,
  listBytesMax,
  listFits,
  listMarginBytes,
  nextTimestamp,
  type SubscriptionList,
  withoutSubscription
} from "#domain/subscription/subscription.ts"
import type { Caller } from "#identity/identity.ts"
import { keys } from "#streams/buckets.ts"
import type { ChannelToken, UserToken } from "#streams/tokens.ts"
import { registeredChannels, registrationsAtOnce } from "#subscriptions/audience.ts"
import { type Preconditions, readPreconditions, stamp } from "../http/preconditions.ts"
import { type ApiRequest, type Call, readBody } from "../http/request.ts"
import { badId, type ErrorDetail, ok, refuse } from "../http/response.ts"
import { queryPairs } from "../listing/query.ts"
import { VapidPublicKeys } from "../vapid-public-keys.ts"
import {
  changed,
  changeRegistration,
  type Decision,
  listOf,
  unchanged,
  valueAt,
  type Writer
} from "../write.ts"
import {
  isId,
  isTooLarge,
  PostBody,
  ruleErrors,
  SubscriptionBody,
  SubscriptionObject,
  storedOf,
  subscriptionExample,
  subscriptionView,
  unknownSubscription
} from "./form.ts"

export interface Posted {
  /** Computed from the endpoint. The client cannot choose the id. */
  readonly id: string
  /** The id in the body, which must be the computed one. */
  readonly claimed: string | undefined
  readonly data: SubscriptionData
  /** The application server key of the subscription, when the client names one. */
  readonly vapidKey: string | undefined
  /** The id of a subscription that is removed. */
  readonly replaces?: string
  /** Whether the response has a secret that renews the subscription. */
  readonly renews: boolean
  /** The secret in the body. */
  readonly secret?: string
  /** The hash of the secret that proves a renewal. */
  readonly renewedBy?: string
}

interface PostInput {
  readonly posted: Posted
  readonly preconditions: Preconditions
}

const decodePut = readBody(SubscriptionBody)
const decodePost = readBody(PostBody)

type Decode = typeof decodePut | typeof decodePost

/** The description of POST and PUT in the OpenAPI document, without the summary. */
export const postDoc = {
  parameters: ["preconditions", "renewal"],
  body: SubscriptionBody,
  bodyExample: subscriptionExample,
  bodyRequired: true,
  responses: {
    200: Schema.Struct({
      data: SubscriptionObject,
      renewal: Schema.optionalKey(Schema.String),
      warnings: Schema.optionalKey(Schema.Array(Schema.String))
    }),
    201: Schema.Struct({ data: SubscriptionObject, renewal: Schema.optionalKey(Schema.String) })
  },
  errors: [400, 406, 409, 412, 413, 415, 429, 507]
}

/** Reads a body with `data` of a subscription. */
export const readWith = (decode: Decode) =>
  Effect.fnUntraced(function* ({ query, request }: Call, errors: Array<ErrorDetail>) {
    if (queryPairs(query) === undefined) return yield* refuse("undecodable-url")
    const { allowLoopbackEndpoints, pushHosts } = yield* Settings
    const preconditions = readPreconditions(request, errors)
    const { raw, value } = yield* decode(request, errors)
    const { usable } = yield* VapidPublicKeys
    errors.push(
      ...ruleErrors(raw, { hosts: pushHosts, allowLoopback: allowLoopbackEndpoints }, usable)
    )
    // Without a value there are errors, and the pipeline then ignores the input.
    if (value === undefined) return { preconditions } as PostInput
    const { id: claimed } = value.data
    if (claimed !== undefined && !isId(claimed)) errors.push(badId)
    const data = storedOf(value.data)
    if (isTooLarge(data)) return yield* refuse("subscription-too-large")
    return {
      posted: {
        id: endpointHash(data.endpoint),
        claimed,
        data,
        vapidKey: data["vapid_public_key"] as string | undefined,
        ...("replaces" in value ? { replaces: value.replaces as string } : {}),
        renews: asksForRenewal(request),
        ...("renewal" in value ? { secret: value.renewal as string } : {})
      },
      preconditions
    } as PostInput
  })

export const readPut = readWith(decodePut)
export const readPost = readWith(decodePost)

/** Decides to store or replace a subscription, within the quotas of the user. */
export const store = Effect.fnUntraced(function* (
  writer: Writer & Pick<Call, "rootUrl">,
  list: SubscriptionList,
  posted: Posted,
  now: number,
  status: 200 | 201
) {
  const caller = writer.caller!
  const { data, id, replaces, vapidKey: named } = posted
  const by = posted.renewedBy
  const isReplacing = replaces !== undefined && (replaces !== id || by !== undefined)
  if (isReplacing && by === undefined && !Object.hasOwn(list.subscriptions, replaces))
    return yield* unknownSubscription(replaces)
  const isNew = !Object.hasOwn(list.subscriptions, id)
  const moved = isNew ? yield* admit(writer, list, posted) : undefined
  const first = nextTimestamp(list, now)
  const lastModified = isReplacing ? first + 1 : first
  // An endpoint belongs to one subscription of the browser, so its application server key never
  // changes.
  const known = moved ?? list.subscriptions[id]
  const vapidKey = named ?? (known ? known.vapidKey : (yield* VapidPublicKeys).current)
  const secret = posted.renews ? newRenewal(caller.user, id) : undefined
  const noted = vapidKey === undefined ? {} : { vapidKey }
  const command = {
    type: "subscription.put",
    user: caller.id,
    id,
    data,
    ...noted,
    ...(isReplacing
      ? { replaces: { id: replaces, lastModified: first, ...(by && { renewal: by }) } }
      : {}),
    ...(secret && { renewal: renewalHash(secret) }),
    lastModified
  } as const
  // The real sequence is unknown yet. The largest one has the most digits.
  if (!listFits(evolveList(list, command, Number.MAX_SAFE_INTEGER), listBytesMax - listMarginBytes))
    return yield* refuse("list-too-large")
  const headers = { ...stamp(lastModified), ...madeAt(status, writer, id) }
  const response = (after: SubscriptionList) =>
    ok({ data: subscriptionView(after, id), ...(secret && { renewal: secret }) }, headers, status)
  return changed(command, response, { moves: moved !== undefined })
})

/**
 * Checks owner and quotas of a subscription that is new to the user. Returns that of another user,
 * which moves.
 */
const admit = Effect.fnUntraced(function* (writer: Writer, list: SubscriptionList, posted: Posted) {
  const { data, replaces = "" } = posted
  const other = yield* storedByAnother(writer.caller!.user, posted)
  const isRefused = posted.renewedBy !== undefined || (other && !hasSameKeys(other.data, data))
  if (other !== undefined && isRefused) return yield* refuse("held-by-another")
  const full = exhausted(withoutSubscription(list, replaces), data.endpoint, yield* Settings)
  if (full !== undefined)
    return yield* refuse(full === "host" ? "too-many-at-push-service" : "too-many-subscriptions")
  if (other?.standIn) yield* carryRegistrations(other.owner, writer)
  return other
})

/**
 * The subscription of another user at this endpoint, with that user; undefined: none. Fails with
 * 507 where nobody can have the endpoint, as the page of its owner is full.
 */
const storedByAnother = Effect.fnUntraced(function* (user: UserToken, { data, id }: Posted) {
  // Read from the leader: a replica may lack a new stand-in, whose registrations would be lost.
  const page = yield* valueAt("subscriptions", keys.endpointOwners(id))
  if (page !== undefined && !hasRoomFor(page, id)) return yield* refuse("no-room")
  const owner = page && (ownerOf(page, id) as UserToken | undefined)
  if (owner === undefined || owner === user) return undefined
  const [, stored] = atEndpoint(yield* listOf(owner), data.endpoint) ?? []
  return stored && { ...stored, owner }
})

/** Where a new subscription is: a 201 without Location would name the list (RFC 9110, 15.3.2). */
const madeAt = (status: 200 | 201, { rootUrl }: Pick<Call, "rootUrl">, id: string) =>
  status === 201 ? { Location: `${rootUrl}/subscriptions/${id}` } : {}

/** Decides to give a stored subscription another secret. Its timestamp stays. */
export const refreshed = (
  { id: name, user }: Caller,
  list: SubscriptionList,
  id: string,
  now: number,
  isRepeated: boolean
): Decision<SubscriptionList, SubscriptionCommand> => {
  const secret = newRenewal(user, id)
  const { lastModified, seq } = list.subscriptions[id]!
  const body = { data: subscriptionView(list, id), renewal: secret }
  const of = { user: name, id, generation: seq, renewal: renewalHash(secret) }
  return changed(
    { type: "subscription.renewable", ...of, isRepeated, at: now },
    ok(body, stamp(lastModified))
  )
}

/** Whether a request asks for a secret: `Prefer: renewal` (RFC 7240). */
const asksForRenewal = ({ headers }: ApiRequest): boolean =>
  (headers["prefer"] ?? "").split(",").some((each) => /^\s*renewal\s*(;|$)/i.test(each))

/** A secret: the pseudonym of the user, the id of the subscription, and 256 random bits. */
const newRenewal = (user: UserToken, id: string): string =>
  `${user}.${id}.${randomBytes(32).toString("base64url")}`

export const renewalHash = (secret: string): string =>
  createHash("sha256").update(secret).digest("base64url")

/** The longest time for the registrations of one stand-in. A repeat goes on where this one ends. */
const carryMillis = 5_000

/**
 * Registers the user of a request to the channels of a stand-in, closed ones, too, and whatever the
 * user holds: an operator chose them. Comes before the move, so that no later broadcast misses the
 * browser; the projector then ends the registrations of the stand-in. Refused with 503 when that
 * takes too long.
 */
const carryRegistrations = Effect.fnUntraced(
  function* (standIn: UserToken, writer: Writer) {
    const register = (channel: ChannelToken) =>
      changeRegistration(channel, writer, (registration, at) =>
        Effect.succeed(
          registration?.on
            ? unchanged(response)
            : changed({ type: "registration.put", user: writer.user!.id, at }, response)
        )
      )
    const [first, ...rest] = yield* registeredChannels(standIn)
    if (first === undefined) return
    // Several first writes at once would count as several new users.
    yield* register(first)
    yield* Effect.forEach(rest, register, { concurrency: registrationsAtOnce, discard: true })
  },
  Effect.timeoutOrElse({ duration: carryMillis, orElse: () => refuse("unavailable") })
)

const response = ok({})
