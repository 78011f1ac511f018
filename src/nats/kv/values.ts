// The type of a bucket's values, by the type of the key: a read returns what writers of the key
// store. No schema decodes what is read: only Bellcast writes it, from values of these types.
// Decoding costs 2 us for each push (1.7 for a list of one subscription, 0.3 for a registration),
// about 1 % of the push. And during a rolling upgrade it drops fields that only newer processes
// know: an older process that writes the value back would lose them.
import type { AccessToken } from "#domain/access-token.ts"
import type { Drafts } from "#domain/draft.ts"
import type { ChannelPushes } from "#domain/outcome.ts"
import type { Progress } from "#domain/progress.ts"
import type { Publishers } from "#domain/publisher.ts"
import type {
  ChannelBegin,
  ChannelRegistrations,
  Registration,
  RegistrationCounts
} from "#domain/registration.ts"
import type { EndpointOwners } from "#domain/subscription/owners.ts"
import type { SubscriptionList } from "#domain/subscription/subscription.ts"
import type { BucketName, EntryBuckets, EntryKind, metaKey } from "#streams/buckets.ts"

/** Bucket revisions that a follower knew. */
export type Revisions = Readonly<Partial<Record<BucketName, number>>>

/** Identifies the stream that the buckets were made from. */
export interface Mark {
  /** Sequence of the last message that the follower had applied. */
  readonly seq: number
  /** When the server stored that message, milliseconds since the epoch: backups keep it. */
  readonly at: number
  /** The other buckets of the follower had at least these revisions. */
  readonly revisions: Revisions
}

/** The entry `meta`, which every bucket has. */
export interface Meta {
  readonly v: 1
  /** A follower's checkpoint: sequence of the last message that it applied. */
  readonly seq?: number
  /** Identifies the stream that the buckets up to the checkpoint were made from. */
  readonly mark?: Mark
  /**
   * In the bucket `channels`: facts of LOG up to this sequence may count outcomes that WORK has
   * lost. A rebuild has taken their counts from LOG.
   */
  readonly taken?: number
  /**
   * In the bucket `registrations`: among the entries up to this revision is none any more of a
   * registration that ended.
   */
  readonly forgottenUpTo?: number
  /**
   * In the bucket `permissions`: LOG has no message up to this sequence that is older than the
   * history and that nothing rests on.
   */
  readonly historyUpTo?: number
  /**
   * Likewise: of what was true before this time, in milliseconds since the epoch, LOG may lack
   * messages.
   */
  readonly historyFrom?: number
  /** Likewise: sequences of LOG that are deleted now, in this order. */
  readonly deleting?: ReadonlyArray<number>
  /** The bucket lacks what the streams have: it waits for a rebuild. */
  readonly unbuilt?: boolean
}

/** Credentials that a gateway verified. `until`: milliseconds since the epoch. */
export interface VerificationEntry {
  readonly v: 1
  readonly until: number
  readonly known: {
    readonly _tag: "Known"
    readonly user: string
    readonly groups: ReadonlyArray<string>
    readonly expiresAt?: number
  }
}

/** A user who logged in with a browser. `until`: milliseconds since the epoch. */
export interface SessionEntry {
  readonly v: 1
  readonly until: number
  /** A mail address is an HMAC here, and in the groups. */
  readonly user: string
  readonly groups: ReadonlyArray<string>
}

interface EntryValues {
  readonly subscriptions: SubscriptionList
  readonly endpointOwners: EndpointOwners
  readonly registration: Registration
  readonly registrationCounts: RegistrationCounts
  readonly channelRegistrations: ChannelRegistrations
  readonly channelBegin: ChannelBegin
  readonly channelPushes: ChannelPushes
  readonly broadcast: Progress
  readonly publishers: Publishers
  readonly token: AccessToken
  readonly drafts: Drafts
  /** The holder of a follower's lease; empty: nobody holds the lease. */
  readonly lease: {
    readonly v: 1
    readonly holder: string
    /** Its length; unset: `leaseSeconds`. */
    readonly seconds?: number
  }
  /** See `HowFar` of src/rebuild/notes.ts. */
  readonly rebuilding: {
    readonly v: 1
    readonly stream: string
    readonly step: "folded" | "written"
    readonly done: number
    readonly of?: number
  }
  readonly usedPageToken: { readonly v: 1 }
  readonly verification: VerificationEntry
  /** The day of the last use, in UTC. */
  readonly tokenUse: { readonly v: 1; readonly day: string }
  readonly usedLogin: { readonly v: 1 }
  readonly session: SessionEntry
  /** Up to this time, in milliseconds since the epoch. */
  readonly turns: { readonly v: 1; readonly until: number }
  readonly probe: { readonly v: 1; readonly probe: number }
  readonly meta: Meta
}

/** The kind of a typed key. `string` has none. */
type KindOf<K extends string> = K extends { readonly entry: infer Kind extends EntryKind }
  ? Kind
  : never

/** The value of a typed key; unknown for any other string. */
export type ValueOf<K extends string> = [KindOf<K>] extends [never]
  ? unknown
  : EntryValues[KindOf<K>]

/** The bucket of a typed key; any bucket for any other string. */
export type BucketOf<K extends string> = [KindOf<K>] extends [never]
  ? BucketName
  : EntryBuckets[KindOf<K>]

type KindIn<B extends BucketName> = Exclude<
  { [Kind in EntryKind]: B extends EntryBuckets[Kind] ? Kind : never }[EntryKind],
  KindOf<typeof metaKey>
>

/** The value of any entry of a bucket but `meta`. */
export type ValueIn<B extends BucketName> = EntryValues[KindIn<B>]

export interface Entry<V = unknown> {
  readonly key: string
  readonly value: V
  readonly revision: number
  /** Characters of the JSON. */
  readonly bytes: number
}
