// The record on the device, as the client works with it; its stored form: ../device/record.ts.
import { type ByUser, inStore, keysOf, type StoredRecord } from "../device/record.ts"

/** The record; `keys` has the keys of `key`, of which the first one is that of the subscription. */
export interface DeviceRecord extends Omit<StoredRecord, "key"> {
  keys: Set<string>
}

/** The members of a record that name no subscription. */
export const noSubscription = {
  endpoint: null,
  p256dh: null,
  auth: null,
  renewal: null,
  checked: 0
} as const

export interface Found {
  readonly record: DeviceRecord
  /** The client was never used in this browser, as far as the device knows. */
  readonly isNew: boolean
}

/**
 * The record of a scope. A site that moved its worker has one of another scope: its wishes and
 * channels count, and its subscription is a former one. Without any, a record of `first`.
 */
export const readRecord = async (
  scope: string,
  first: Pick<StoredRecord, "api" | "user" | "since">
): Promise<Found> => {
  const own = await inStore<StoredRecord | undefined>("readonly", (records) => records.get(scope))
  if (own) return { record: decoded(own), isNew: false }
  const [other] = await inStore<Array<StoredRecord>>("readonly", (all) => all.getAll())
  if (!other) return { record: decoded({ ...empty, ...first }), isNew: true }
  const { endpoint, former, user } = other
  const moved = endpoint && user !== null ? { former: { ...former, [user]: endpoint } } : {}
  return {
    record: decoded({ ...other, ...noSubscription, api: first.api, ...moved }),
    isNew: false
  }
}

/** Stores the record as the only one of the origin. */
export const saveRecord = async (
  scope: string,
  { keys, ...record }: DeviceRecord
): Promise<void> => {
  const stored: StoredRecord = { ...record, key: [...keys].join() || null }
  await inStore("readwrite", (records) => {
    records.clear()
    return records.put(stored, scope)
  })
}

/** The scope of any record; undefined: there is none. */
export const anyScope = async (): Promise<string | undefined> => {
  const scopes = await inStore("readonly", (records) => records.getAllKeys())
  return scopes[0] as string | undefined
}

const empty = { ...noSubscription, on: {}, former: {}, join: {}, key: null }

const decoded = (stored: StoredRecord): DeviceRecord => {
  const { former, join, key, on, ...rest } = stored
  return {
    ...rest,
    keys: new Set(keysOf({ key })),
    on: bare(on),
    former: bare(former),
    join: bare(join)
  }
}

/** Without the members of an object: a user may be called `constructor`. */
const bare = <T>(users: ByUser<T> | undefined): ByUser<T> =>
  Object.assign(Object.create(null), users)
