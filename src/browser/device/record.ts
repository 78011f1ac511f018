// The record that the pages and the worker of a site share on the device: who is signed in, who
// wants pushes, and the subscription. ../README.md describes each member.
//
// The form stays: a page may be of this version while the worker, which the browser updates when it
// likes, is of another one.
import { inTime } from "./time.ts"

/** Values by the ids of users. */
export type ByUser<T> = { [user: string]: T }

export interface StoredRecord {
  api: string
  user: string | null
  locale?: string | undefined
  since: number
  on: ByUser<boolean>
  /** Keys with commas between them, or null. */
  key: string | null
  endpoint: string | null
  p256dh: string | null
  auth: string | null
  renewal: string | null
  checked: number
  former: ByUser<string>
  join: ByUser<{ [channel: string]: true }>
}

/** The first one is the key of the subscription. */
export const keysOf = ({ key }: Pick<StoredRecord, "key">): ReadonlyArray<string> =>
  key?.split(",").filter((each) => each !== "") ?? []

/** Name of the Web Lock of those who change the record or the subscription. */
export const lockOf = (scope: string): string => `bellcast:${scope}`

/** Resolves at `event`. A browser that says nothing, as on a broken disk, has 10 s. */
const settled = (target: IDBRequest | IDBTransaction, event: "success" | "complete") =>
  inTime(
    new Promise<void>((resolve, reject) => {
      const failed = () => reject(target.error)
      target.addEventListener(event, () => resolve())
      target.addEventListener("error", failed)
      target.addEventListener("abort", failed)
    })
  )

/** One transaction on the records, which have their scopes as keys. Resolves when it is stored. */
export const inStore = async <T>(
  mode: IDBTransactionMode,
  use: (records: IDBObjectStore) => IDBRequest<T>
): Promise<T> => {
  const opening = indexedDB.open("bellcast", 1)
  opening.onupgradeneeded = () => opening.result.createObjectStore("state")
  await settled(opening, "success")
  const database = opening.result
  try {
    const transaction = database.transaction("state", mode)
    const request = use(transaction.objectStore("state"))
    await settled(transaction, "complete")
    return request.result
  } finally {
    // An open connection would block a later version of the database.
    database.close()
  }
}
