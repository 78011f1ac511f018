// The browser's half of a subscription: the worker's registration, its push manager, and all
// subscriptions of the origin.
import { lockOf } from "../device/record.ts"
import { answerMillis, type Waits, wait } from "../device/time.ts"
import type { ConnectOptions, PushState } from "../types/client.d.ts"
import { failAs } from "./errors.ts"

/** The state of a page that cannot have Web Push here; undefined: it can. */
export const obstacleOf = ({
  registration,
  worker
}: ConnectOptions): Extract<PushState, "unsupported" | "install-first"> | undefined => {
  const { Notification, PushManager, pushManager } = window as PushWindow
  const { serviceWorker, standalone } = navigator as PushNavigator
  const manager = worker || registration ? serviceWorker : pushManager
  if (Notification && PushManager && manager) return undefined
  // On iOS and iPadOS: the page is not on the home screen.
  return standalone === false ? "install-first" : "unsupported"
}

/** Any of them may be missing, in old browsers and where the page came by http. */
type PushWindow = Partial<Pick<typeof globalThis, "Notification" | "PushManager">> & {
  /** Safari subscribes without a worker, too. */
  readonly pushManager?: PushManager
}
type PushNavigator = Partial<Navigator> & { readonly standalone?: boolean }

export class BrowserPush {
  readonly #options: ConnectOptions
  readonly #waits: Waits
  #registration: ServiceWorkerRegistration | undefined
  /** Whether the worker is active, or the site has none. Before that, nothing is subscribed. */
  isReady: boolean

  constructor(options: ConnectOptions, waits: Waits) {
    this.#options = options
    this.#waits = waits
    this.isReady = !(options.worker || options.registration)
  }

  /** The scope of the worker; without a worker that of the origin. */
  get scope(): string {
    return this.#registration?.scope ?? `${location.origin}/`
  }

  /** Registers the worker, and waits for it: not for `ready`, which any worker of a page makes. */
  async prepare(): Promise<void> {
    const { registration, worker } = this.#options
    if (this.isReady) return
    const begin = Date.now()
    const asked = async () => registration ?? navigator.serviceWorker.register(worker as string)
    const found = await this.#waits.for(asked()).catch(failAs("worker"))
    // Polled: before it is active, a worker that is being installed may be replaced.
    while (!found?.active) {
      if (Date.now() - begin > answerMillis) failAs("worker")()
      await wait(50)
    }
    this.#registration = found
    this.isReady = true
  }

  /** Finds the worker of an earlier load, where this one could not register its own. */
  async findWorker(scope: string): Promise<void> {
    this.#registration ??= await navigator.serviceWorker.getRegistration(scope)
  }

  /** Runs `task` while neither another page nor the worker changes record or subscription. */
  async alone<T>(task: () => Promise<T>): Promise<T> {
    const locks = (navigator as Partial<Navigator>).locks
    const run = () => this.#waits.run(task)
    return locks ? locks.request(lockOf(this.scope), { signal: this.#waits.signal }, run) : run()
  }

  /** The subscription of the worker. */
  async subscription(): Promise<PushSubscription | null> {
    return this.#waits.for(this.#manager.getSubscription())
  }

  /** The subscriptions of all workers of the origin, which may have several scopes. */
  async subscriptions(): Promise<ReadonlyArray<PushSubscription>> {
    const all = [await this.subscription()]
    const { serviceWorker } = navigator as Partial<Navigator>
    for (const { pushManager, scope } of (await serviceWorker?.getRegistrations()) ?? [])
      if (scope !== this.scope) all.push(await this.#waits.for(pushManager.getSubscription()))
    return all.filter((each) => each !== null && keyOf(each) !== "") as Array<PushSubscription>
  }

  /** The push service must be reached: Brave's switch or a network may prevent that. */
  subscribe(applicationServerKey: string): Promise<PushSubscription> {
    return this.#waits
      .for(this.#manager.subscribe({ userVisibleOnly: true, applicationServerKey }))
      .catch(failAs("push-service"))
  }

  /** Succeeds always: an offline Firefox forgets the subscription at once, but rejects. */
  async unsubscribe(subscription: PushSubscription | null | undefined): Promise<void> {
    await this.#waits.for(subscription?.unsubscribe()).catch(console.debug)
  }

  /** Closes shown pushes, and leaves the site's own notifications. */
  async closePushes(): Promise<void> {
    const shown: ReadonlyArray<Notification & { readonly navigate?: string }> =
      (await this.#registration?.getNotifications()) ?? []
    // Declarative pushes, which Safari shows without the worker, have `navigate` and no data.
    for (const each of shown) if (each.data?.bellcast ?? each.navigate) each.close()
  }

  get #manager(): PushManager {
    return this.#registration?.pushManager ?? (window as PushWindow).pushManager!
  }
}

/** The VAPID key of a subscription; "": there is no subscription, or it has none. */
export const keyOf = (subscription: PushSubscription | null | undefined): string => {
  const key = subscription?.options.applicationServerKey
  return btoa(String.fromCharCode(...new Uint8Array(key ?? [])))
    .replace(/\+/g, "-")
    .replace(/\//g, "_")
    .replace(/=/g, "")
}

/** The language of the user; Chromium on Linux may say `en-US@posix`, or `C`, which is none. */
export const localeOf = (): string | undefined => {
  try {
    return Intl.getCanonicalLocales(navigator.language.split("@", 1))[0]
  } catch {
    return undefined
  }
}

/** Browsers by a part of their user agent, the ones that claim to be others first. */
const agents = {
  Edge: /Edg/,
  Opera: /OPR/,
  "Samsung Internet": /SamsungBrowser/,
  Firefox: /Firefox|FxiOS/,
  Chrome: /Chrom|CriOS/,
  Safari: /Safari/
}
const systems = {
  Android: /Android/,
  iPhone: /iPhone/,
  iPad: /iPad/,
  Windows: /Windows/,
  ChromeOS: /CrOS/,
  macOS: /Mac/,
  Linux: /Linux/
}

const nameOf = (patterns: { readonly [name: string]: RegExp }): string | undefined =>
  Object.keys(patterns).find((name) => patterns[name]!.test(navigator.userAgent))

/** The name that people give to this browser, such as "Firefox on Android". */
export const labelOf = (): string | undefined => {
  const [agent, system] = [nameOf(agents), nameOf(systems)]
  return agent && system && `${agent} on ${system}`
}

/** A subscription as requests have it. */
export interface SubscriptionData {
  readonly endpoint: string
  readonly keys: Keys
  readonly vapid_public_key: string
  readonly locale?: string | undefined
  readonly label?: string | undefined
}

export interface Keys {
  readonly p256dh: string
  readonly auth: string
}

/** `toJSON` of a subscription that can get pushes. */
interface Json {
  readonly endpoint: string
  readonly keys: Keys
}

const jsonOf = (subscription: PushSubscription) => subscription.toJSON() as unknown as Json

export const dataOf = (subscription: PushSubscription): SubscriptionData => ({
  ...jsonOf(subscription),
  vapid_public_key: keyOf(subscription),
  locale: localeOf(),
  label: labelOf()
})

/** The members of the record that say which subscription it is. */
export const fieldsOf = (subscription: PushSubscription): { readonly endpoint: string } & Keys => {
  const { endpoint, keys } = jsonOf(subscription)
  return { endpoint, ...keys }
}
