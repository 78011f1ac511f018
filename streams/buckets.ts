// The KV buckets: projections that the gateway, the planner and delivery read. `bellcast rebuild`
// can delete all but the last and make them again from the streams.
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
  /**
   * One key for each user of a channel, spread by hash; and the number of registrations of each
   * user.
   */
  registrations: {
    name: "bellcast_registrations",
    maxBytes: 1024 * mebibyte,
    // A count takes 30 bytes for a user. With 26 million users one key counts 100 of them.
    maxValueBytes: 65_536,
    ttlMillis: 0,
    forgets: false
  },
  /** Counts of a channel: the projector counts registrations, the tally counts pushes. */
  channels: {
    name: "bellcast_channels",
    maxBytes: 128 * mebibyte,
    maxValueBytes: 4096,
    ttlMillis: 0,
    forgets: false
  },
  /** Progress of each unfinished broadcast. LOG has the counts of finished broadcasts. */
  broadcasts: {
    name: "bellcast_broadcasts",
    maxBytes: 256 * mebibyte,
    maxValueBytes: 4096,
    ttlMillis: 35 * 24 * 60 * 60_000,
    forgets: false
  },
  /** Who may publish on one channel. The settings name who may publish on all of them. */
  permissions: {
    name: "bellcast_permissions",
    maxBytes: 64 * mebibyte,
    maxValueBytes: 65_536,
    ttlMillis: 0,
    forgets: false
  },
  /**
   * Short-lived entries that processes share: the leases of followers, used page tokens. Not a
   * projection. When the bucket is full, the server deletes the oldest entries, so that a follower
   * can always renew its lease (twice a second).
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

/** The buckets that `bellcast rebuild` makes again from the streams. */
export const projections = [
  "subscriptions",
  "registrations",
  "channels",
  "broadcasts",
  "permissions"
] as const satisfies ReadonlyArray<BucketName>

/**
 * A key that every bucket has, so that a multi-get never returns nothing: an empty response does
 * not say which revision the replica has. In a bucket with a follower, the follower's checkpoint.
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
   * Number of registrations of each user whose token begins with the same three characters: at
   * most 262,144 keys. No channel token begins with `=users`, so no registration has such a key.
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
