// Limits what a client takes, so that one leaves others their share: of time by the rate of
// requests, of LOG, which keeps each change for a year and more, by the rate of changes, new
// channels and new users, and of the storage as a whole. An entry of a batch counts like a request
// of its own.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { makeRate, type Rate } from "#basics/limits.ts"
import { monotonicMillis } from "#clock/clocks.ts"
import { OneByOne } from "#clock/one-by-one.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { lastShare, Space, usersShare } from "#nats/watch/space.ts"
import { type BucketName, bucketStream, keys } from "#streams/buckets.ts"
import { streams } from "#streams/index.ts"
import type { UserToken } from "#streams/tokens.ts"
import { registrationsSince } from "#subscriptions/audience.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import type { Call } from "./http/request.ts"
import { type Refused, refuse, retryAfter } from "./http/response.ts"
import { GatewaySettings } from "./settings.ts"

/**
 * Subscriptions that one user may take from others in an hour. A person logs in on a few shared
 * browsers; each move makes LOG larger by two commands.
 */
const movesPerHourMax = 30

/**
 * Renewals without a login of one address in a minute. A browser renews once in weeks; many may
 * share an address.
 */
const renewalsPerMinuteMax = 60

/**
 * Bytes of drafts that a user stores in an hour: the largest one, saved every 10 s. Apart from
 * broadcasts, so that who writes may always send.
 */
const draftBytesPerHourMax = 16 * 1024 ** 2

/** The most addresses, and the most users, in memory: about 150 bytes each. */
const keysMax = 20_000

/**
 * Bytes of LOG that count as one change of an address. A usual registration and its end have 870.
 */
export const changeBytes = 900
/** Of a put and of what ends it: headers, and the body of the end but for the user. Measured. */
const overheadBytes = 590

/**
 * Bytes that a put takes in LOG together with what ends it: a removal by its user or by a push, or
 * its rejection. Those are never refused, so the put pays for them.
 */
export const bytesOfChange = (subject: string, body: { readonly user: string }): number =>
  Buffer.byteLength(JSON.stringify(body)) +
  Buffer.byteLength(body.user) +
  2 * subject.length +
  overheadBytes

/** A change that is to be stored. */
interface StoredChange {
  readonly user: string
  readonly address: string
  /** Bytes of LOG, those of what ends it included. */
  readonly bytes: number
  /**
   * The first change of a user whom no policy verifies. With such a policy any name is a new user,
   * so quotas per user alone limit nothing.
   */
  readonly isNewUser?: boolean
  readonly isNewChannel?: boolean
  /** A move of a subscription to the user. */
  readonly isMove?: boolean
}

/** Counts one (or `cost`) of an address or of a user. Fails with 429 when there were too many. */
type Admit = (key: string, cost?: number) => Effect.Effect<void, Refused>

export class RequestRates extends Context.Service<
  RequestRates,
  {
    readonly ofAddress: Admit
    readonly ofUser: Admit
    /**
     * Counts the shards that a dry run reads, of its caller. Apart from requests: dry runs must not
     * use up those that a publisher needs for broadcasts.
     */
    readonly ofDryRun: Admit
    /**
     * Counts a change that is to be stored, in all that it is or, if one of these had too many, in
     * none. Of the address it counts once for each `changeBytes` of its bytes.
     */
    readonly ofChange: (change: StoredChange) => Effect.Effect<void, Refused>
    /** Counts bytes of LOG for the broadcasts of a publisher. */
    readonly ofBroadcasts: Pick<Limit, "count" | "giveBack">
    /** Counts bytes of LOG for the drafts that a user stores. */
    readonly ofDrafts: Admit
    /** Counts a registration of another user, of the caller who makes it. */
    readonly ofMember: Admit
    /** Counts an erasure of another user, of the caller who asks for it. */
    readonly ofErasure: Admit
    /** Counts that a change, which was counted before, moves a subscription to a user. */
    readonly ofMove: Admit
    /** Counts a renewal without a login, of an address. */
    readonly ofRenewal: Admit
    /** Whether new users of an address count. If not, any number may come. */
    readonly countsNewUsers: boolean
  }
>()("bellcast/gateway/RequestRates") {
  static readonly layer = Layer.effect(
    RequestRates,
    Effect.gen(function* () {
      const settings = yield* GatewaySettings
      const changes = changesOf(settings)
      const moves = movesOfUser()
      const newChannels = { user: newChannelsOf(settings), address: newChannelsOf(settings) }
      const newUsersMax = settings.newUsersPerAddressPerHourMax
      const newUsers = limitOf(
        "too-many-new-users",
        newUsersMax,
        "new users are refused: an address brings too many " +
          byAddress("BELLCAST_NEW_USERS_PER_ADDRESS_PER_HOUR_MAX")
      )
      return RequestRates.of({
        ofChange: ({ address, bytes, user, ...is }) =>
          countAll([
            ...(is.isNewUser ? [[newUsers, address] as const] : []),
            ...(is.isNewChannel ? [[newChannels.user, user] as const] : []),
            ...(is.isNewChannel ? [[newChannels.address, address] as const] : []),
            [changes.user, user],
            [changes.address, address, Math.max(1, bytes / changeBytes)],
            ...(is.isMove ? [[moves, user] as const] : [])
          ]),
        ofBroadcasts: broadcastBytesOf(settings),
        ofDrafts: draftBytes().count,
        ofMember: limitOf(
          "too-many-members",
          settings.membersPerCallerPerHourMax,
          "members are refused: a caller registers too many " +
            "(BELLCAST_MEMBERS_PER_CALLER_PER_HOUR_MAX)"
        ).count,
        ofErasure: erasuresOf(settings).count,
        ofMove: moves.count,
        ofRenewal: renewals().count,
        countsNewUsers: newUsersMax > 0,
        ofAddress: limitOf(
          "too-many-requests",
          settings.requestsPerAddressPerMinuteMax,
          "requests are refused: an address sends too many " +
            byAddress("BELLCAST_REQUESTS_PER_ADDRESS_PER_MINUTE_MAX")
        ).count,
        ofUser: limitOf(
          "too-many-requests",
          settings.requestsPerUserPerMinuteMax,
          `requests are refused: a user sends too many ${byUser}`
        ).count,
        ofDryRun: limitOf(
          "too-many-requests",
          settings.requestsPerUserPerMinuteMax,
          `dry runs are refused: a user reads too many parts of audiences ${byUser}`
        ).count
      })
    })
  )
}

const byUser = "(BELLCAST_REQUESTS_PER_USER_PER_MINUTE_MAX)"

/** The end of a log line: the setting of a limit of addresses, and the usual mistake. */
const byAddress = (setting: string) =>
  `(${setting}; behind a proxy BELLCAST_TRUSTED_PROXIES must name it)`

const changesOf = (settings: GatewaySettings["Service"]) => ({
  user: limitOf(
    "too-many-changes",
    settings.changesPerUserPerHourMax,
    "changes are refused: a user stores too many (BELLCAST_CHANGES_PER_USER_PER_HOUR_MAX)"
  ),
  address: limitOf(
    "too-many-changes",
    settings.changesPerAddressPerHourMax,
    "changes are refused: an address stores too many " +
      byAddress("BELLCAST_CHANGES_PER_ADDRESS_PER_HOUR_MAX")
  )
})

const broadcastBytesOf = ({
  broadcastBytesPerPublisherPerHourMax: max
}: Pick<GatewaySettings["Service"], "broadcastBytesPerPublisherPerHourMax">): Limit =>
  limitOf(
    "too-many-broadcast-bytes",
    max,
    "broadcasts are refused: those of a publisher take too many bytes " +
      "(BELLCAST_BROADCAST_BYTES_PER_PUBLISHER_PER_HOUR_MAX)"
  )

const erasuresOf = ({
  membersPerCallerPerHourMax: max
}: Pick<GatewaySettings["Service"], "membersPerCallerPerHourMax">): Limit =>
  limitOf(
    "too-many-changes",
    max,
    "erasures are refused: a caller asks for too many of other users " +
      "(BELLCAST_MEMBERS_PER_CALLER_PER_HOUR_MAX)"
  )

const draftBytes = (): Limit =>
  limitOf(
    "too-many-draft-bytes",
    draftBytesPerHourMax,
    "drafts are refused: those of a user take too many bytes"
  )

const movesOfUser = (): Limit =>
  limitOf(
    "too-many-moves",
    movesPerHourMax,
    "moves are refused: a user stores too many subscriptions of other users"
  )

const renewals = (): Limit =>
  limitOf(
    "too-many-requests",
    renewalsPerMinuteMax,
    "renewals are refused: an address sends too many " +
      "(behind a proxy BELLCAST_TRUSTED_PROXIES must name it)"
  )

/** The limit of new channels, for one user or for one address. */
const newChannelsOf = ({
  newChannelsPerHourMax
}: Pick<GatewaySettings["Service"], "newChannelsPerHourMax">): Limit =>
  limitOf(
    "too-many-new-channels",
    newChannelsPerHourMax,
    "registrations are refused: a user or an address brings too many new channels " +
      byAddress("BELLCAST_NEW_CHANNELS_PER_HOUR_MAX")
  )

/** Counts for all or, if one has too many, for none. */
const countAll = Effect.fnUntraced(function* (
  all: ReadonlyArray<readonly [limit: Limit, key: string, cost?: number]>
) {
  for (const [limit, key, cost] of all) yield* limit.check(key, cost)
  for (const [limit, key, cost] of all) yield* limit.count(key, cost)
})

interface Limit {
  readonly count: Admit
  /** Like `count`, but counts nothing. */
  readonly check: Admit
  /** Takes back what was counted. */
  readonly giveBack: (key: string, cost?: number) => Effect.Effect<void>
}

const windowMillis = {
  "too-many-requests": 60_000,
  "too-many-changes": 3_600_000,
  "too-many-broadcast-bytes": 3_600_000,
  "too-many-draft-bytes": 3_600_000,
  "too-many-new-channels": 3_600_000,
  "too-many-moves": 3_600_000,
  "too-many-new-users": 3_600_000,
  "too-many-members": 3_600_000
} as const

/** `max`: of each key in a window; 0: any number. `refused`: the line in the log. */
const limitOf = (error: keyof typeof windowMillis, max: number, refused: string): Limit => {
  const rate = makeRate(max, windowMillis[error], keysMax)
  const warn = makeRateLimitedLog(refused)
  const by = (waitOf: Rate["take"]): Admit =>
    Effect.fnUntraced(function* (key, cost) {
      const waitMillis = waitOf(key, yield* monotonicMillis, cost)
      if (waitMillis === 0) return
      yield* warn({ max })
      return yield* refuse(error, retryAfter(waitMillis))
    })
  return {
    count: by(rate.take),
    check: by(rate.wait),
    giveBack: (key, cost) => Effect.sync(() => rate.giveBack(key, cost))
  }
}

/** How long a write waits for its turn, and is tried again after conflicts, together. */
export const writeMillis = 5_000

/** Writes of a user that wait for others of the same state. Each holds a request. */
const waitingMax = 32

const turns = new OneByOne<string>(waitingMax)

/**
 * Runs one write on a subject of a user at a time: of many at once, each would read the state and
 * decide again after each of the others. `otherwise`: the response when its turn does not come.
 */
export const oneWriteAtATime = <A, E, R, B, F, S>(
  subject: string,
  user: UserToken,
  write: Effect.Effect<A, E, R>,
  otherwise: Effect.Effect<B, F, S>
) => turns.run({ key: subject, owner: user, millis: writeMillis }, write, otherwise)

/** The number of a user's registrations. */
export const registrationsOf = (user: UserToken) =>
  Effect.map(registrationsSince(user), (held) => held.length)

/**
 * Whether a write is the first of a user who counts as a new one of an address. `hasNoList`: the
 * list of the user's subscriptions was read before, and there is none.
 */
export const isNewcomer = Effect.fnUntraced(function* (
  call: Pick<Call, "caller">,
  hasNoList: boolean
) {
  const { countsNewUsers } = yield* RequestRates
  const { user, verified } = call.caller!
  if (!countsNewUsers || verified === true) return false
  const readList = (yield* Buckets).get("subscriptions", keys.subscriptions(user))
  const [list, registrations] = yield* Effect.all(
    [hasNoList ? Effect.undefined : readList, registrationsOf(user)],
    { concurrency: "unbounded" }
  )
  return list === undefined && registrations === 0
})

interface Needs {
  /** Streams that the write makes larger. */
  readonly grows: ReadonlyArray<string>
  /** Streams in which the write replaces an entry by one of about the same size. */
  readonly rewrites?: ReadonlyArray<string>
}

const of = (...names: ReadonlyArray<BucketName>) => names.map(bucketStream)
const log = streams.log.name

/** The streams and buckets in which each kind of write needs room. */
const needs = {
  // A broadcast needs WORK for its jobs. WORK keeps messages for up to 35 days: in a full one the
  // broadcast would wait until it expires.
  broadcast: { grows: [log, streams.work.name, ...of("broadcasts")] },
  /** A broadcast of a user, who must leave its share of LOG to publishers. */
  test: { grows: [log, streams.work.name, ...of("broadcasts")] },
  draft: { grows: [log, ...of("drafts")] },
  registration: { grows: [log, ...of("registrations")], rewrites: of("channels") },
  /** The first registration in a channel. */
  channel: { grows: [log, ...of("registrations", "channels")] },
  subscription: { grows: [log, ...of("subscriptions")] },
  /** A put that makes the list of the user no larger. */
  renewal: { grows: [log], rewrites: of("subscriptions") }
} satisfies Record<string, Needs>

export type Growth = keyof typeof needs

/**
 * Fails with 507 when a stream of this kind of write is full. Users may fill 90 % of LOG; the rest
 * is for broadcasts, so that no flood of users stops those. Running requests may exceed it.
 */
export const demandRoom = Effect.fnUntraced(function* (kind: Growth) {
  const space = yield* Space
  const { grows, rewrites = [] }: Needs = needs[kind]
  const isReserved = kind !== "broadcast" && space.isFull([log], usersShare)
  if (isReserved || space.isFull(grows) || space.isFull(rewrites, lastShare))
    return yield* refuse("no-room")
})

/** Fails with 507 when one of these buckets is full. */
export const demandRoomIn = Effect.fnUntraced(function* (buckets: ReadonlyArray<BucketName>) {
  if ((yield* Space).isFull(of(...buckets))) return yield* refuse("no-room")
})
