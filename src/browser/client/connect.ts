// client.js, the module that pages load: `connect` and what it gives. This file has the buttons,
// the state that a page shows, and the moments at which device and service are made to agree.
// agree.ts says how they do, service.ts and browser.ts are the two sides, storage.ts the record.
import { answerMillis, atMost, dayMillis, Waits } from "../device/time.ts"
import type * as Types from "../types/client.d.ts"
import type { ConnectOptions, PushState } from "../types/client.d.ts"
import { Agreement, type Wish } from "./agree.ts"
import { BrowserPush, obstacleOf } from "./browser.ts"
import { asBellcastError, BellcastError } from "./errors.ts"
import { Service } from "./service.ts"
import { anyScope } from "./storage.ts"
import { hearPages, type News, onReturn, tellPages, watchPermission, whileVisible } from "./tabs.ts"

/** A logout must not wait longer for the service; what it could not tell is told later. */
const tellMillis = 1000

/** Of several calls of `connect` in one page the last one counts. */
let latest: Client | undefined
/** When device and service were last made to agree, or tried to. */
let triedAt = 0

export const connect: typeof Types.connect = (options) => Client.connect(options)

class Client extends EventTarget implements Types.Push {
  state: PushState
  error: BellcastError | null = null
  busy = false
  /** Methods that are working. */
  #calls = 0
  readonly #options: ConnectOptions
  readonly #waits = new Waits()
  readonly #service: Service
  readonly #browser: BrowserPush
  readonly #agreement: Agreement
  /** The browser asks the user: a change of the permission is the answer. */
  #isAsking = false
  #permission: PermissionStatus | undefined
  readonly #listening = new AbortController()
  #retry: number | undefined

  constructor(options: ConnectOptions) {
    super()
    this.#options = options
    this.#service = new Service(options, this.#waits)
    this.#browser = new BrowserPush(options, this.#waits)
    this.#agreement = new Agreement(options, this.#service, this.#browser)
    this.state = obstacleOf(options) ?? "off"
  }

  static async connect(options: ConnectOptions): Promise<Client> {
    const client = new Client(options)
    if (client.state !== "off") return client
    if (latest) latest.#retire()
    else whileVisible(() => Date.now() - triedAt > dayMillis && latest!.#again())
    latest = client
    await client.#start()
    return client
  }

  /** Follows events from now on. Resolves when the state is known, after 11 s at most. */
  async #start(): Promise<void> {
    const { signal } = this.#listening
    hearPages((news) => this.#hear(news))
    onReturn(() => this.#again(), signal)
    const changed = () => this.#isAsking || this.#again()
    watchPermission(changed, signal).then((status) => {
      this.#permission = status
    }, console.debug)
    // Asked while the worker starts: the load waits for the service once less.
    if (this.#agreement.user !== null) this.#service.publicKey().catch(console.debug)
    if (!(await atMost(answerMillis, this.#again())))
      await atMost(tellMillis, this.#publish(this.error))
  }

  /** Another call of `connect` counts from now on: this one has the older user. */
  #retire(): void {
    this.#agreement.named = 0
    this.#listening.abort()
  }

  /** Makes device and service agree. */
  #again(): Promise<PushState> {
    return this.#agree(false)
  }

  async enable(options?: { readonly channels?: ReadonlyArray<string> }): Promise<PushState> {
    const channels = options?.channels ?? []
    if (this.#obstacle || this.#agreement.user === null) return this.#wish({ on: false, join: {} })
    const isClick = navigator.userActivation?.isActive ?? true
    this.#isAsking = true
    // Nothing is awaited before: Firefox and Safari would take the call for one without a click.
    const permission = isClick ? await this.#ask() : Notification.permission
    const join = Object.fromEntries(channels.map((each) => [each, true as const]))
    const code = isClick ? "dismissed" : "no-click"
    if (permission === "granted") await this.#wish({ on: true, join })
    else await this.#publish(permission === "denied" ? null : new BellcastError(code, true))
    this.#isAsking = false
    return this.state
  }

  /** The question may stay open while the permission is granted elsewhere. */
  #ask(): Promise<NotificationPermission> {
    return new Promise((resolve) => {
      const look = () => resolve(Notification.permission)
      this.#permission?.addEventListener("change", look, { once: true })
      Notification.requestPermission().then(resolve, look)
    })
  }

  disable(): Promise<PushState> {
    return this.#wish({ on: false, join: {} })
  }

  check(): Promise<PushState> {
    this.#agreement.isDue = true
    return this.#busyWith(this.#again())
  }

  signOut(): Promise<PushState> {
    return this.#busyWith(this.#signOut())
  }

  async join(channel: string): Promise<void> {
    await this.#service.join(channel)
  }

  async leave(channel: string): Promise<void> {
    // Else the next load would join the channel that a button chose before.
    delete this.#agreement.wish?.join[channel]
    await this.#browser.alone(() => this.#agreement.forgetChannel(channel)).catch(console.debug)
    await this.#service.leave(channel)
  }

  channels(): Promise<Array<string>> {
    return this.#service.channels()
  }

  get #obstacle() {
    return obstacleOf(this.#options)
  }

  /** Keeps what a button asks for until it is stored. */
  async #wish({ join, on }: Wish): Promise<PushState> {
    if (this.#obstacle) return this.state
    const agreement = this.#agreement
    // Also where a later `connect` in this page has another user.
    if (agreement.user === null || agreement.user !== latest!.#agreement.user)
      return this.#publish(new BellcastError("user"))
    agreement.wish = { on, join: { ...(on && agreement.wish?.join), ...join } }
    return this.#busyWith(this.#again())
  }

  async #signOut(): Promise<PushState> {
    const agreement = this.#agreement
    const { user } = agreement
    agreement.user = null
    agreement.wish = undefined
    this.#giveUp()
    agreement.named = Date.now()
    tellPages({})
    await this.#again()
    const tell = async () => {
      if (user === null) return
      const { former } = (await agreement.read()).record
      if (former[user]) await this.#service.remove(former[user])
    }
    await atMost(tellMillis, tell().catch(console.debug))
    return this.state
  }

  /** Ends what waits for this user, who leaves. */
  #giveUp(): void {
    this.#waits.giveUp(new BellcastError("user", true))
  }

  /** Counts calls: `busy` ends with the last one. */
  async #busyWith<T>(work: Promise<T>): Promise<T> {
    const count = (by: number) => {
      this.#calls += by
      const busy = this.#calls > 0
      if (busy === this.busy) return
      this.busy = busy
      this.dispatchEvent(new Event("change"))
    }
    count(1)
    return work.finally(() => count(-1))
  }

  /** Each step that fails and is retryable is tried once more. */
  async #agree(isRetry: boolean): Promise<PushState> {
    if (this.#obstacle) return this.state
    triedAt = Date.now()
    clearTimeout(this.#retry)
    const error = await this.#tryToAgree().then(() => null, asBellcastError)
    if (error) await this.#endUnwanted(error).catch(console.debug)
    if (error?.retryable && !isRetry)
      this.#retry = setTimeout(() => this.#agree(true), error.retryAfterMillis)
    this.#service.forgetPublicKey()
    const state = await this.#publish(error)
    const { hasSaved, user } = this.#agreement
    if (hasSaved) tellPages({ user, isDone: !error })
    this.#agreement.hasSaved = false
    return state
  }

  async #tryToAgree(): Promise<void> {
    await this.#browser.prepare()
    await this.#browser.alone(() => this.#agreement.agree())
  }

  /** Users who want no pushes get none, also without the worker or without storage. */
  async #endUnwanted({ code }: BellcastError): Promise<void> {
    if (code === "worker") {
      const scope = await anyScope()
      if (scope === undefined) return
      await this.#browser.findWorker(scope)
      await this.#browser.alone(() => this.#agreement.agree())
    }
    const { user, wish } = this.#agreement
    if (code === "browser" && (user === null || wish?.on === false))
      await this.#browser.unsubscribe(await this.#browser.subscription())
  }

  /** Shows what another page of the site did, or gives up what a logout there makes needless. */
  #hear({ isDone, user }: News): void {
    if (isDone === undefined) {
      if (this.#agreement.user !== null) this.#giveUp()
    } else void this.#publish(isDone && user === this.#agreement.user ? null : this.error)
  }

  async #publish(error: BellcastError | null): Promise<PushState> {
    const state = await this.#look().catch(() => "off" as const)
    const isChanged = state !== this.state || error?.code !== this.error?.code
    this.error = error
    this.state = state
    if (isChanged) this.dispatchEvent(new Event("change"))
    return state
  }

  /** The state by what is on the device. */
  async #look(): Promise<PushState> {
    const { permission } = Notification
    if (permission === "denied") return "denied"
    const { record } = await this.#agreement.read()
    if (!this.#agreement.isWanted(record)) return "off"
    if (permission === "default") return "lost"
    const found = await this.#browser.subscription()
    return found?.endpoint === record.endpoint && record.checked > 0 ? "on" : "off"
  }
}
