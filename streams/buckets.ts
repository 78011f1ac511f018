// The KV buckets: projections that the gateway, the planner and delivery read. `bellcast rebuild`
// makes all but `cache` equal to the streams.
import type { BucketSpec } from "./spec.ts"
import { type ChannelToken, shardPath, type UserToken } from "./tokens.ts"

const mebibyte = 1024 ** 2

/**
 * `maxBytes`: one hostile address, at the limits of the gateway, fills no bucket within 45 days
 * (src/cli/README.md, what fills the disk).
 */
export const buckets = {
  /** One document a user: subscriptions, tombstones, timestamps. Pages with owners of endpoints. */
  subscriptions: {
    name: "bellcast_subscriptions",
    maxBytes: 4096 * mebibyte,
    maxValueBytes: mebibyte - 4096,
    ttlMillis: 0,
    forgets: false
  },
  /**
   * One key for each user of a channel, spread by hash; and the registrations of each user, a few
   * users in one value.
   */
  registrations: {
    name: "bellcast_registrations",
    maxBytes: 2048 * mebibyte,
    // A user takes 30 bytes, and 10 for each registration. With 26 million users one key has 100 of
    // them. The projector rejects a registration that would make the value too large.
    maxValueBytes: mebibyte - 4096,
    ttlMillis: 0,
    forgets: false
  },
  /** Counts of a channel: the projector counts registrations, the tally counts pushes. */
  channels: {
    name: "bellcast_channels",
    maxBytes: 192 * mebibyte,
    maxValueBytes: 4096,
    ttlMillis: 0,
    forgets: false
  },
  /** Progress of each unfinished broadcast. LOG has the counts of finished broadcasts. */
  broadcasts: {
    name: "bellcast_broadcasts",
    maxBytes: 256 * mebibyte,
    // The fact in LOG has the same text, and LOG takes 32 KiB. A broadcast of a minute has 1 KB,
    // one of 100 million pushes to 20 languages over four weeks 23 KB.
    maxValueBytes: 28 * 1024,
    ttlMillis: 35 * 24 * 60 * 60_000,
    forgets: false
  },
  /**
   * The users who may publish on one channel, and the tokens of servers that publish. The settings
   * name those who may publish on all channels.
   */
  permissions: {
    name: "bellcast_permissions",
    maxBytes: 64 * mebibyte,
    maxValueBytes: 65_536,
    ttlMillis: 0,
    forgets: false
  },
  /**
   * One index an author: which drafts there are, and where LOG has each. LOG alone has what they
   * say. 200 drafts take 17 KB at most, so that some 4,000 authors may have as many as they may.
   */
  drafts: {
    name: "bellcast_drafts",
    maxBytes: 64 * mebibyte,
    maxValueBytes: 65_536,
    ttlMillis: 0,
    forgets: false
  },
  /**
   * Short-lived entries that processes share: the leases of followers, used page tokens, verified
   * credentials, logins and sessions, turns of pushes; and the day of the last use of tokens, which
   * stays longer. Not a projection. When the bucket is full, the server deletes the oldest entries,
   * so that a follower can always renew its lease (every second).
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
export const bucketNames = Object.keys(buckets) as ReadonlyArray<BucketName>

/** The stream behind a bucket (ADR-8). */
export const bucketStream = (bucket: BucketName): string => `KV_${buckets[bucket].name}`

export const bucketSubject = (bucket: BucketName, key: string): string =>
  `$KV.${buckets[bucket].name}.${key}`

/** The buckets that `bellcast rebuild` makes again from the streams. */
export const projections = [
  "subscriptions",
  "registrations",
  "channels",
  "broadcasts",
  "permissions",
  "drafts"
] as const satisfies ReadonlyArray<BucketName>

/** The bucket of each kind of entry. */
export interface EntryBuckets {
  readonly subscriptions: "subscriptions"
  readonly endpointOwners: "subscriptions"
  readonly registration: "registrations"
  readonly registrationCounts: "registrations"
  readonly channelRegistrations: "channels"
  readonly channelBegin: "channels"
  readonly channelPushes: "channels"
  readonly broadcast: "broadcasts"
  readonly publishers: "permissions"
  readonly token: "permissions"
  readonly drafts: "drafts"
  readonly lease: "cache"
  readonly rebuilding: "cache"
  readonly usedPageToken: "cache"
  readonly verification: "cache"
  readonly tokenUse: "cache"
  readonly usedLogin: "cache"
  readonly session: "cache"
  readonly turns: "cache"
  readonly probe: "cache"
  readonly meta: BucketName
}

export type EntryKind = keyof EntryBuckets

/** A key of a bucket, or a wildcard over its keys. The type says what kind of entry the key has. */
export type EntryKey<K extends EntryKind> = string & { readonly entry: K }

const entryKey = <K extends EntryKind>(key: string): EntryKey<K> => key as EntryKey<K>

/**
 * A key that every bucket has, so that a multi-get never returns nothing: an empty response does
 * not say which revision the replica has. In a bucket with a follower, the follower's checkpoint.
 */
export const metaKey = entryKey<"meta">("meta")

export const keys = {
  subscriptions: (user: UserToken) => entryKey<"subscriptions">(user),
  /**
   * The owners of endpoints whose hash begins with the same four digits: at most 65,536 keys. With
   * 10 million subscriptions one names 150 owners, in 14 KB, and those whose subscriptions push
   * services ended in the last 30 days. No user token has such a key.
   */
  endpointOwners: (hash: string) => entryKey<"endpointOwners">(`=endpoints.${hash.slice(0, 4)}`),
  registration: (channel: ChannelToken, user: UserToken) =>
    entryKey<"registration">(`${channel}.${shardPath(user)}.${user}`),
  /** Filter over the registrations of one shard of a channel. */
  registrationsOf: (channel: ChannelToken, shard: string) =>
    entryKey<"registration">(shard === "all" ? `${channel}.>` : `${channel}.${shard}.>`),
  /** Narrows such a wildcard to one sixteenth, by the next hexadecimal digit. */
  sixteenthOf: (registrations: EntryKey<"registration">, digit: string) =>
    entryKey<"registration">(registrations.replace(/>$/, `${digit}.>`)),
  /**
   * The registrations of each user whose token begins with the same three characters: at
   * most 262,144 keys. No channel token begins with `=users`, so no registration has such a key.
   */
  registrationCounts: (user: UserToken) =>
    entryKey<"registrationCounts">(`=users.${user.slice(0, 3)}`),
  channelRegistrations: (channel: ChannelToken) =>
    entryKey<"channelRegistrations">(`${channel}.registrations`),
  channelPushes: (channel: ChannelToken) => entryKey<"channelPushes">(`${channel}.pushes`),
  /** No channel token begins with `=begin`. */
  channelBegin: (channel: ChannelToken) => entryKey<"channelBegin">(`=begin.${channel}`),
  /** Wildcard over the begins of all channels: their keys are an index of the names. */
  channelBegins: entryKey<"channelBegin">("=begin.*"),
  broadcast: (broadcast: number) => entryKey<"broadcast">(String(broadcast)),
  publishers: (channel: ChannelToken) => entryKey<"publishers">(`${channel}.publishers`),
  /** Wildcard over the grants of all channels. */
  allPublishers: entryKey<"publishers">("*.publishers"),
  /** `hash`: that of a token. No channel token begins with `=token`. */
  token: (hash: string) => entryKey<"token">(`=token.${hash}`),
  /** Wildcard over all tokens. */
  tokens: entryKey<"token">("=token.*"),
  drafts: (author: UserToken) => entryKey<"drafts">(author),
  lease: (follower: string) => entryKey<"lease">(`lease.${follower}`),
  /** How far the process is that makes the buckets again. */
  rebuilding: entryKey<"rebuilding">("rebuilding"),
  usedPageToken: (nonce: string) => entryKey<"usedPageToken">(`page.${nonce}`),
  /** `key`: an HMAC of a token, never the token. */
  verification: (key: string) => entryKey<"verification">(`verification.${key}`),
  tokenUse: (hash: string) => entryKey<"tokenUse">(`token-use.${hash}`),
  /** `key`: an HMAC of the number that a browser's login was begun with. */
  usedLogin: (key: string) => entryKey<"usedLogin">(`login.${key}`),
  /** `key`: an HMAC of the session's token, never the token. */
  session: (key: string) => entryKey<"session">(`session.${key}`),
  /** The time up to which a broadcast with a rate has given turns to its pushes. */
  turns: (broadcast: number) => entryKey<"turns">(`turns.${broadcast}`),
  /** Written by a health check and read back. */
  probe: (id: string) => entryKey<"probe">(`probe.${id}`)
} as const

/** Whether a key of the bucket `subscriptions` is that of owners. */
export const isEndpointOwners = (key: string): boolean => key.startsWith("=endpoints.")

/** Whether a key of the bucket `registrations` is that of one registration. */
export const isRegistration = (key: string): key is EntryKey<"registration"> =>
  key !== metaKey && !key.startsWith("=users.")

/** The channel of a key of its counts; undefined: another key of the bucket. */
export const channelOfKey = (
  key: string
): { readonly channel: ChannelToken; readonly of: "registrations" | "pushes" } | undefined => {
  const [channel, of] = key.split(".")
  return channel !== "=begin" && (of === "registrations" || of === "pushes")
    ? { channel: channel as ChannelToken, of }
    : undefined
}

/** The channel of a key that `channelBegins` matches. */
export const channelOfBegin = (key: string): ChannelToken =>
  key.slice(key.indexOf(".") + 1) as ChannelToken

/** The channel of a key that `allPublishers` matches. */
export const channelOfPublishers = (key: string): ChannelToken =>
  key.slice(0, key.indexOf(".")) as ChannelToken

/** The user of a registration's key. */
export const userOfKey = (key: string): UserToken =>
  key.slice(key.lastIndexOf(".") + 1) as UserToken
