// Tombstones of removed subscriptions, from which clients learn of the removal. Pure.
import { otherPushService, pushServiceAt } from "./endpoint.ts"

/**
 * The entry of a removed subscription. A number is the time of the removal. A subscription that a
 * push service ended can be renewed: its entry has the hash of the secret. The entry of one that
 * another user took says by which put, if pushes were waiting for it. `by`: that put took one that
 * had ended before, and `subscription.moved` does not say so yet.
 */
export type Tombstone =
  | number
  | { readonly lastModified: number; readonly isMoved: true; readonly by?: number }
  | ({ readonly lastModified: number; readonly isMoved: true } & Taken)
  | { readonly lastModified: number; readonly renewal: string; readonly generation: number }

/** A subscription that another user took. */
export interface Taken {
  /** Sequence of the command that stored it. */
  readonly generation: number
  /** Sequence of the put that took it. */
  readonly moved: number
  /** Absent: of no push service with a name. */
  readonly service?: string
}

type Tombstones = Readonly<Record<string, Tombstone>>

interface Movable {
  readonly data: { readonly endpoint: string }
  readonly seq: number
  readonly moved?: number
  readonly suspended?: object
}

/** The tombstone of a subscription that another user took; `otherwise`: nobody took it. */
export const movedOr = (
  { data, moved, seq, suspended }: Movable,
  lastModified: number,
  otherwise: Tombstone
): Tombstone => {
  if (moved === undefined) return otherwise
  const isMoved = { lastModified, isMoved: true } as const
  if (suspended !== undefined) return isMoved
  const service = pushServiceAt(URL.parse(data.endpoint)?.hostname ?? "")
  const named = service === otherPushService ? {} : { service }
  return { ...isMoved, generation: seq, moved, ...named }
}

/** Beyond this the oldest tombstones are dropped, so that a list fits into one bucket value. */
export const tombstonesMax = 1_000

/**
 * Beyond this the oldest secrets of ended subscriptions are void. A logout everywhere names all of
 * them and 50 subscriptions in one message of LOG: 104 bytes for each, of at most 32 KiB.
 */
export const renewablesMax = 100

/** How long a subscription that a push service ended can be renewed. */
export const renewableMillisMax = 30 * 24 * 60 * 60_000

/** The timestamp of a tombstone. */
export const removedAt = (tombstone: Tombstone): number =>
  typeof tombstone === "number" ? tombstone : tombstone.lastModified

/** Tombstones without those that were removed at these times, by id. */
export const withoutTombstones = (
  tombstones: Tombstones,
  removed: Readonly<Record<string, number>>
): Tombstones =>
  Object.fromEntries(
    Object.entries(tombstones).filter(
      ([id, each]) => !(Object.hasOwn(removed, id) && removed[id] === removedAt(each))
    )
  )

/** The hash of the secret that renews an ended subscription; undefined: there is none. */
export const renewalIn = (tombstones: Tombstones, id: string): string | undefined => {
  const tombstone = Object.hasOwn(tombstones, id) ? tombstones[id] : undefined
  return typeof tombstone === "object" && "renewal" in tombstone ? tombstone.renewal : undefined
}

/** As {@link renewalIn}, while the secret is valid. `now`: milliseconds since the epoch. */
export const validRenewalIn = (tombstones: Tombstones, id: string, now: number) => {
  const renewal = renewalIn(tombstones, id)
  return renewal === undefined || now - removedAt(tombstones[id]!) >= renewableMillisMax
    ? undefined
    : renewal
}

/** The ended subscriptions that a secret renews, with their timestamps. */
export const renewables = (tombstones: Tombstones) =>
  Object.entries(tombstones).flatMap(([id, tombstone]) =>
    renewalIn(tombstones, id) === undefined ? [] : [{ id, lastModified: removedAt(tombstone) }]
  )

/** Voids the secret of an ended subscription. */
export const withoutRenewal = (tombstones: Tombstones, id: string): Tombstones =>
  renewalIn(tombstones, id) === undefined
    ? tombstones
    : { ...tombstones, [id]: removedAt(tombstones[id]!) }

/** Notes that another user has a removed subscription: its secret is void, nobody restores it. */
export const withMoved = (tombstones: Tombstones, id: string, by?: number): Tombstones => {
  const tombstone = Object.hasOwn(tombstones, id) ? tombstones[id] : undefined
  if (tombstone === undefined) return tombstones
  const isNoted = typeof tombstone === "object" && "isMoved" in tombstone
  if (isNoted && (by !== undefined || !("by" in tombstone))) return tombstones
  const lastModified = removedAt(tombstone)
  const moved = { lastModified, isMoved: true, ...(by === undefined ? {} : { by }) } as const
  return { ...tombstones, [id]: moved }
}

/** Drops the oldest tombstones, and voids the oldest secrets, beyond the bounds. */
export const boundTombstones = (given: Tombstones): Tombstones => {
  const entries = Object.entries(given)
  const tombstones =
    entries.length <= tombstonesMax
      ? given
      : Object.fromEntries(
          entries.sort(([, a], [, b]) => removedAt(a) - removedAt(b)).slice(-tombstonesMax)
        )
  return renewables(tombstones)
    .sort((a, b) => a.lastModified - b.lastModified)
    .slice(0, -renewablesMax)
    .reduce((kept, { id }) => withoutRenewal(kept, id), tombstones)
}
