// Makes the device and the service agree on the subscription of this browser. The table in
// ../README.md, "How device and service agree", has each case; here each step says its reason.
//
// A page may be closed between two steps. So the record says first what is to be, then the browser
// subscribes or unsubscribes, then the service is told; the next load does what is left. The worker
// renews a subscription of the record only, so it never brings back one that ends.
import { dayMillis } from "../device/time.ts"
import type { ConnectOptions } from "../types/client.d.ts"
import {
  type BrowserPush,
  dataOf,
  fieldsOf,
  keyOf,
  localeOf,
  type SubscriptionData
} from "./browser.ts"
import { BellcastError, failAs } from "./errors.ts"
import type { Service } from "./service.ts"
import { type DeviceRecord, type Found, noSubscription, readRecord, saveRecord } from "./storage.ts"

/** A button asked for it: pushes here or not, and channels to join. */
export interface Wish {
  readonly on: boolean
  readonly join: { [channel: string]: true }
}

/** The next owner of the record. */
type Owner = Pick<DeviceRecord, "user" | "since">

/** `checked` of a record whose full check has begun: until one ends, each load checks fully. */
const checkBegan = 1

export class Agreement {
  readonly #options: ConnectOptions
  readonly #service: Service
  readonly #browser: BrowserPush
  /** The user of the page; null: nobody is signed in. */
  user: string | null
  /** When the page named its user. Of two pages with different users the later one counts. */
  named = Date.now()
  /** The wish of a button, until it is stored. */
  wish: Wish | undefined
  /** The next agreement checks fully, however short ago the last full check was. */
  isDue = false
  /** The record was stored, and other pages do not know. */
  hasSaved = false

  constructor(options: ConnectOptions, service: Service, browser: BrowserPush) {
    this.#options = options
    this.#service = service
    this.#browser = browser
    this.user = String(options.user ?? "") || null
  }

  read(): Promise<Found> {
    const { named: since, user } = this
    return readRecord(this.#browser.scope, { api: this.#service.api, user, since })
  }

  async save(record: DeviceRecord): Promise<void> {
    this.hasSaved = true
    await saveRecord(this.#browser.scope, record)
  }

  /** Whether the user of this page wants pushes here. */
  isWanted({ on, user }: DeviceRecord): boolean {
    return user !== null && user === this.user && on[user] === true
  }

  /** The user leaves a channel, which may have been chosen and not joined yet. */
  async forgetChannel(channel: string): Promise<void> {
    const { record } = await this.read()
    const channels = this.user === null ? undefined : record.join[this.user]
    if (!channels?.[channel]) return
    delete channels[channel]
    await this.save(record)
  }

  /** Makes them agree. One page at a time may do so: see `alone` of browser.ts. */
  async agree(): Promise<void> {
    const { isNew, record } = await this.read()
    const { user, wish } = this
    if (record.user !== user && !(await this.#takeOver(record, user, wish))) return
    record.since = Math.max(record.since, this.named)
    // Without its worker a page ends subscriptions, but makes none.
    if (!this.#browser.isReady && (wish?.on ?? this.isWanted(record))) return
    if (record.checked && (wish || this.isDue)) {
      record.checked = checkBegan
      await this.save(record)
    }
    this.isDue = false
    const existing = await this.#browser.subscription()
    if (wish) await this.#storeWish(record, wish, isNew)
    else if (isNew && !(await this.#inherit(record))) return
    if (record.api !== this.#service.api)
      Object.assign(record, { api: this.#service.api, checked: 0, renewal: null })
    if (this.isWanted(record)) return this.#turnOn(record, existing, wish !== undefined)
    await this.#turnOff(record)
    if (user !== null && this.#options.adopt) await this.#endImported(record)
  }

  /** Ends pushes of the former user, and gives the record to `user`. False: a later page rules. */
  async #takeOver(record: DeviceRecord, user: string | null, wish: Wish | undefined) {
    // A time to come is no later page: the clock was ahead when it was written.
    if (record.since > this.named && record.since < Date.now()) {
      this.wish = undefined
      if (wish) throw new BellcastError("user")
      return false
    }
    await this.#turnOff(record, { user, since: this.named }).finally(() =>
      this.#browser.closePushes()
    )
    return true
  }

  async #storeWish(record: DeviceRecord, wish: Wish, isNew: boolean): Promise<void> {
    const user = record.user!
    // Before the first record an earlier page may have subscribed this user, who wants none now.
    const own = isNew && !wish.on ? await this.#ownEndpoints(record, true) : []
    record.on[user] = wish.on
    record.join[user] = { ...(wish.on && record.join[user]), ...wish.join }
    await this.save(record)
    for (const endpoint of own) await this.#service.remove(endpoint)
    // Another button may have been pressed meanwhile.
    if (this.wish === wish) this.wish = undefined
  }

  /**
   * Before the first record: pushes of this user go on that an earlier page of the site has made,
   * and with `adopt` those of another service. Ones of another user end with `#turnOff`, which
   * needs the service's key for that. False: nothing is there that the page could judge.
   */
  async #inherit(record: DeviceRecord): Promise<boolean> {
    // The user of `connect`: one who signs out ends a subscription, too.
    if (Notification.permission !== "granted" || !this.#options.user) return false
    const { user } = record
    const own = user === null ? [] : await this.#ownEndpoints(record, this.#options.adopt)
    if (user !== null && own.length > 0) record.on = { [user]: true }
    else if ((await this.#browser.subscriptions()).length > 0) await this.#knowKey(record)
    return true
  }

  /** The user wants pushes here: the service has one subscription of this browser then. */
  async #turnOn(
    record: DeviceRecord,
    existing: PushSubscription | null,
    isPressed: boolean
  ): Promise<void> {
    // The browser took the permission back: the state is "lost" until a button is pressed.
    if (Notification.permission !== "granted") return
    const user = record.user!
    const key = await this.#service.publicKey()
    if (existing && isChecked(record, existing, key)) return this.#joinChosen(record)
    // Imported ones are looked for at the first full check, after a press, and with `adopt`.
    const isLooking = !record.checked || isPressed || this.#options.adopt
    const own = isLooking ? await this.#ownEndpoints(record, true) : []
    for (const endpoint of own) {
      record.former[user] = endpoint
      await this.save(record)
    }
    let found = existing
    // One by the service's key that is not in the record may be another user's.
    const isOurs = existing && (record.endpoint || own.includes(existing.endpoint))
    if (!found || keyOf(found) !== key || !isOurs) {
      if (found) await this.#unsubscribe(record, [found])
      found = await this.#browser.subscribe(key)
    }
    await this.#noteSubscription(record, found, key)
    const data = dataOf(found)
    if (!(await this.#storeAtService(record, data, record.former[user]))) {
      // The endpoint is another user's: only another one can be this user's.
      await this.#unsubscribe(record, [found])
      if (!existing) throw new BellcastError("service")
      return this.#turnOn(record, null, false)
    }
    await this.#endOthers(record, data, own)
    delete record.former[user]
    record.keys = new Set([key])
    Object.assign(record, { locale: data.locale, checked: Date.now() })
    await this.save(record)
    return this.#joinChosen(record)
  }

  /** No push comes twice: other workers of the origin may have subscriptions of this user, too. */
  async #endOthers(record: DeviceRecord, data: SubscriptionData, own: ReadonlyArray<string>) {
    for (const each of await this.#browser.subscriptions()) {
      const { endpoint } = each
      if (endpoint === data.endpoint) continue
      if (keyOf(each) !== data.vapid_public_key && !own.includes(endpoint)) continue
      await this.#storeAtService(record, data, endpoint)
      await this.#browser.unsubscribe(each)
    }
  }

  /**
   * Ends the subscriptions of this browser that are the site's: those by keys of the record. With
   * `next` the record becomes that owner's; the service learns of it by a login of the former one.
   */
  async #turnOff(record: DeviceRecord, next?: Owner): Promise<void> {
    if (record.user !== null && record.on[record.user]) await this.#knowKey(record)
    const ours = async () =>
      (await this.#browser.subscriptions()).filter((each) => record.keys.has(keyOf(each)))
    const all = await ours()
    if (next || record.endpoint || all.length > 0) await this.#unsubscribe(record, all, next)
    if (!next) await this.#removeFormer(record)
    if ((await ours()).length > 0) failAs("push-service")()
  }

  /** Tells the service of a subscription of the user that ended here. */
  async #removeFormer(record: DeviceRecord): Promise<void> {
    const { former, user } = record
    const endpoint = former[user ?? ""]
    if (user === null || !endpoint) return
    await this.#service.remove(endpoint)
    delete former[user]
    await this.save(record)
  }

  /** Ends subscriptions by former keys that an import brought: the user wants no pushes here. */
  async #endImported(record: DeviceRecord): Promise<void> {
    const own = await this.#ownEndpoints(record, true)
    for (const endpoint of own) await this.#service.remove(endpoint)
    if (own.length > 0) await this.#turnOff(record)
  }

  /** The record says first that they are gone: the worker must not renew them. */
  async #unsubscribe(
    record: DeviceRecord,
    all: ReadonlyArray<PushSubscription>,
    next?: Owner
  ): Promise<void> {
    const endpoint = record.endpoint ?? all[0]?.endpoint
    if (endpoint && record.user !== null) record.former[record.user] = endpoint
    Object.assign(record, noSubscription, next)
    await this.save(record)
    for (const each of all) await this.#browser.unsubscribe(each)
  }

  /** Before the service has it: a page that is closed meanwhile finds what it has to store. */
  async #noteSubscription(record: DeviceRecord, subscription: PushSubscription, key: string) {
    const fields = fieldsOf(subscription)
    if (isSame(fields, record)) return
    if (record.endpoint !== fields.endpoint) {
      if (record.endpoint) record.former[record.user!] = record.endpoint
      record.renewal = null
    }
    record.keys.add(key)
    Object.assign(record, fields, { checked: 0 })
    await this.save(record)
  }

  /** In the place of `former`. False: another user has the endpoint, with other keys. */
  async #storeAtService(
    record: DeviceRecord,
    data: SubscriptionData,
    former: string | undefined
  ): Promise<boolean> {
    const stored = await this.#service.store(data, former, !record.renewal)
    if (stored.isHeld) return false
    const { isNew, renewal, subscription } = stored
    // The service had removed the subscription, and with it the secret that the record has.
    if (isNew && renewal === undefined) {
      record.renewal = null
      await this.save(record)
      return this.#storeAtService(record, data, undefined)
    }
    record.renewal = renewal ?? record.renewal
    if (subscription && !isSameAs(data, subscription))
      await this.#service.update(subscription, data)
    return true
  }

  /**
   * Endpoints in this browser, of all workers, that the service has for this user. With
   * `takesFormer` those by other keys become the user's, if the service knows these keys: an import
   * brought them, maybe without a user.
   */
  async #ownEndpoints(record: DeviceRecord, takesFormer = false): Promise<ReadonlyArray<string>> {
    const own: Array<string> = []
    for (const each of await this.#browser.subscriptions()) {
      const key = keyOf(each)
      const isFormer = takesFormer && key !== (await this.#service.publicKey())
      const isOwn = isFormer
        ? await this.#service.take(dataOf(each))
        : await this.#service.has(each.endpoint)
      if (!isOwn) continue
      own.push(each.endpoint)
      record.keys.add(key)
    }
    return own
  }

  /** Subscriptions by the service's key count as the site's, if no key is known. */
  async #knowKey(record: DeviceRecord): Promise<void> {
    if (record.keys.size === 0) record.keys.add(await this.#service.publicKey())
  }

  /** Channels of the button. One that the service refuses must not stop the others. */
  async #joinChosen(record: DeviceRecord): Promise<void> {
    const channels = record.join[record.user!] ?? {}
    let refusal: BellcastError | undefined
    for (const channel in channels) {
      await this.#service.join(channel).catch((error: BellcastError) => {
        // The next load tries again.
        if (error.retryable || error.code === "login") throw error
        refusal = error
      })
      delete channels[channel]
      await this.save(record)
    }
    if (refusal) throw refusal
  }
}

/** Nothing changed since a full check within a day. */
const isChecked = (record: DeviceRecord, subscription: PushSubscription, key: string): boolean =>
  record.keys.size === 1 &&
  record.keys.has(key) &&
  isSame({ ...fieldsOf(subscription), locale: localeOf() }, record) &&
  // Either way: the clock may have been ahead.
  Math.abs(Date.now() - record.checked) < dayMillis

/** The members of `fields` are the same in the record. */
const isSame = (fields: Partial<DeviceRecord>, record: DeviceRecord): boolean =>
  Object.entries(fields).every(([name, value]) => record[name as keyof DeviceRecord] === value)

/** The service has the keys and the language that the browser has, and a label where it has one. */
const isSameAs = ({ keys, label, locale }: SubscriptionData, stored: SubscriptionData): boolean =>
  stored.keys.p256dh === keys.p256dh &&
  stored.keys.auth === keys.auth &&
  stored.locale === locale &&
  (stored.label ?? label) === stored.label
