// The browser replaced or lost the subscription: the worker subscribes, and the service puts the
// new subscription in the place of the old one, by a secret of the record and without a login.
import { inStore, keysOf, lockOf, type StoredRecord } from "../device/record.ts"
import { answerMillis, atMost } from "../device/time.ts"

declare const self: ServiceWorkerGlobalScope

/** Errno of the service: the secret is not valid any more. */
const refusedSecret = 121

/** Renews while no page changes the record or the subscription. */
export const renewAlone = async (): Promise<void> => {
  const locks = (self.navigator as Partial<WorkerNavigator>).locks
  await (locks ? locks.request(lockOf(self.registration.scope), renew) : renew())
}

const renew = async (): Promise<void> => {
  const { scope } = self.registration
  const record: StoredRecord | undefined = await inStore("readonly", (all) => all.get(scope))
  // Firefox and Chromium send the event, too, when a permission is granted again: only the record
  // says whether the user wants pushes.
  if (!record?.renewal || record.user === null || record.on[record.user] !== true) return
  const [key = ""] = keysOf(record)
  const { endpoint, keys } = (await subscription(key)).toJSON()
  if (endpoint === record.endpoint) return
  const renewal = await replaced(record, { endpoint, keys, vapid_public_key: key })
  const changed = renewal ? { endpoint, ...keys, renewal } : { renewal }
  await inStore("readwrite", (records) => {
    const request = records.get(scope)
    // A page of another scope may have taken the record over.
    request.onsuccess = () => {
      if (request.result?.renewal === record.renewal) records.put({ ...record, ...changed }, scope)
    }
    return request
  })
}

/** Chromium may wait for its push service for ever, and pages would for the lock. */
const subscription = async (applicationServerKey: string): Promise<PushSubscription> => {
  const { pushManager } = self.registration
  const found =
    (await pushManager.getSubscription()) ??
    (await atMost(
      answerMillis,
      pushManager.subscribe({ userVisibleOnly: true, applicationServerKey })
    ))
  if (!found) throw new Error("push-service")
  return found
}

/** The next secret; null: the service refuses this one, and the next visit of a page will do. */
const replaced = async ({ api, renewal }: StoredRecord, data: object): Promise<string | null> => {
  const response = await fetch(`${api}/subscriptions/replace`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    credentials: "omit",
    signal: AbortSignal.timeout(answerMillis),
    body: JSON.stringify({ renewal, data })
  })
  const answer = (await response.json()) as { readonly errno?: number; readonly renewal?: string }
  if (answer.errno === refusedSecret) return null
  // A network that wants a login may answer with its own page.
  if (answer.renewal === undefined) throw new Error(`${response.status}`)
  return answer.renewal
}
