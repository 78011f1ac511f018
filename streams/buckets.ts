// The KV buckets: projections that queries and fan-out read. All but the last are disposable: `bellcast rebuild` makes them anew.
import type { BucketSpec } from "./spec.ts"
import { type ChannelToken, shardPath, type UserToken } from "./tokens.ts"

const mebibyte = 1024 ** 2

export const buckets = {
  /** One document a user: subscriptions, tombstones, timestamps. */
  subscriptions: {
    name: "bellcast_subscriptions",
    maxBytes: 2048 * mebibyte,
    maxValueBytes: mebibyte - 4096,
    ttlMillis: 0,
    forgets: false
  },
  /** One key a channel and user, spread by hash; beside them how many each user holds. */
  registrations: {
    name: "bellcast_registrations",
    maxBytes: 1024 * mebibyte,
    // Counts take 30 bytes a user; 26 million users would be 100 to a key.
    maxValueBytes: 65_536,
    ttlMillis: 0,
    forgets: false
  },
  /** Counts of a channel: registrations (by the projector) and pushes (by the tally). */
  channels: {
    name: "bellcast_channels",
    maxBytes: 128 * mebibyte,
    maxValueBytes: 4096,
    ttlMillis: 0,
    forgets: false
  },
  /** Progress of each broadcast under way. The counts of a finished one stand in LOG. */
  broadcasts: {
    name: "bellcast_broadcasts",
    maxBytes: 256 * mebibyte,
    maxValueBytes: 4096,
    ttlMillis: 35 * 24 * 60 * 60_000,
    forgets: false
  },
  /** Who may publish on a channel, beside those whom the settings name for all. */
  permissions: {
    name: "bellcast_permissions",
    maxBytes: 64 * mebibyte,
    maxValueBytes: 65_536,
    ttlMillis: 0,
    forgets: false
  },
  /**
   * Short-lived things that processes share: the followers' leases, page tokens that were used up.
   * Not a projection. Full, it forgets its oldest entries: a lease is written twice a second.
   */
  cache: {
    name: "bellcast_cache",
    maxBytes: 128 * mebibyte,
    maxValueBytes: 65_536,
    ttlMillis: 24 * 60 * 60_000,
    forgets: true
  }
} as const satisfies Record<string, BucketSpec>

export type BucketName = keyof typeof buckets

/** Those that are made from the streams, and made anew by `bellcast rebuild`. */
export const projections = [
  "subscriptions",
  "registrations",
  "channels",
  "broadcasts",
  "permissions"
] as const satisfies ReadonlyArray<BucketName>

/**
 * A key that always exists, so that a multi-get never comes back empty: an empty answer carries no proof of freshness. In a bucket
 * with a follower it holds the follower's checkpoint.
 */
export const metaKey = "meta"

export const keys = {
  subscriptions: (user: UserToken): string => user,
  registration: (channel: ChannelToken, user: UserToken): string =>
    `${channel}.${shardPath(user)}.${user}`,
  /** Filter over the registrations of one shard of a channel. */
  registrationsOf: (channel: ChannelToken, shard: string): string =>
    shard === "all" ? `${channel}.>` : `${channel}.${shard}.>`,
  /**
   * How many registrations the user holds, and others whose token begins alike: at most 262,144
   * keys, however many users there are. No channel's token begins like this.
   */
  registrationCounts: (user: UserToken): string => `=users.${user.slice(0, 3)}`,
  channelRegistrations: (channel: ChannelToken): string => `${channel}.registrations`,
  channelPushes: (channel: ChannelToken): string => `${channel}.pushes`,
  broadcast: (broadcast: number): string => String(broadcast),
  publishers: (channel: ChannelToken): string => `${channel}.publishers`,
  lease: (holder: string): string => `lease.${holder}`
} as const

/** The user of a registration's key. */
export const userOfKey = (key: string): UserToken =>
  key.slice(key.lastIndexOf(".") + 1) as UserToken
