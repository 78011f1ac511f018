// Bellcast's client for pages. API: client.d.ts. Design: README.md.

const second = 1000
const week = 7 * 24 * 3600 * second
/** After a full check, loads check nothing for this time: the `max-age` of the service's key. */
const fresh = 300 * second
const timeout = 10 * second

const wait = (millis) => new Promise((resolve) => setTimeout(resolve, millis))

const inTime = (given) =>
  Promise.race([given, wait(timeout).then(() => Promise.reject(new Error("no response")))])

class BellcastError extends Error {
  /** @param {any} [cause] */
  constructor(code, retryable = false, cause, retryAfter = 2) {
    super(`Bellcast: ${code}`, { cause })
    this.code = code
    this.retryable = retryable
    this.retryAfter = retryAfter * second
  }
}

const fail = (code) => (cause) => {
  throw new BellcastError(code, true, cause)
}

const errorOf = (response) => {
  const { status } = response
  const codes = { 401: "login", 403: "forbidden", 413: "limit", 429: "limit", 507: "limit" }
  const retryAfter = response.headers.get("retry-after")
  const code = codes[status] ?? "service"
  const isTemporary = retryAfter !== null || status >= 500
  return new BellcastError(code, isTemporary, status, Number(retryAfter) || 2)
}

const inStore = async (mode, ask) => {
  const database = await new Promise((resolve, reject) => {
    const request = indexedDB.open("bellcast", 1)
    request.onupgradeneeded = () => request.result.createObjectStore("state")
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
  try {
    return await new Promise((resolve, reject) => {
      const transaction = database.transaction("state", mode)
      const request = ask(transaction.objectStore("state"))
      transaction.oncomplete = () => resolve(request.result)
      transaction.onabort = () => reject(transaction.error)
    })
  } finally {
    database.close()
  }
}

const keyOf = ({ options }) =>
  btoa(String.fromCharCode(...new Uint8Array(options.applicationServerKey))).replace(
    /[+/=]/g,
    (each) => ({ "+": "-", "/": "_" })[each] ?? ""
  )

const dataOf = (subscription) => ({
  ...subscription.toJSON(),
  vapid_public_key: keyOf(subscription),
  locale: navigator.language
})

const fieldsOf = (subscription) => {
  const { endpoint, keys } = subscription.toJSON()
  return { endpoint, key: keyOf(subscription), p256dh: keys.p256dh, auth: keys.auth }
}

const isSame = (fields, record) =>
  Object.entries(fields).every(([name, value]) => record[name] === value)

const idOf = async (endpoint) => {
  const bytes = new TextEncoder().encode(JSON.stringify(endpoint))
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))
  return [...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("")
}

const pathOf = async (endpoint) => `/subscriptions/${await idOf(endpoint)}`

const registrationOf = (channel) => {
  try {
    // In a path, browsers take dots for folders, encoded or not.
    if (!/^\.{0,2}$/.test(channel)) return `/channels/${encodeURIComponent(channel)}/registration`
  } catch {}
  throw new BellcastError("service", false, 400)
}

/** The part of a record that tells of a subscription, where there is none. */
const none = { endpoint: null, p256dh: null, auth: null, renewal: null, checked: 0 }

/** A subscription of the browser that has a key, as all of ours have. */
const isPush = (found) => Boolean(found?.options.applicationServerKey)

const isOurs = (found, { key }) => isPush(found) && keyOf(found) === key

const supportOf = (options) => {
  const { serviceWorker, standalone } = /** @type {any} */ (navigator)
  const isWorker = options.worker || options.registration
  const hasPush = "Notification" in window && "PushManager" in window
  if (hasPush && (isWorker ? serviceWorker : Object(window).pushManager)) return
  return standalone === false ? "install-first" : "unsupported"
}

class Push extends EventTarget {
  /** @type {import("./client.d.ts").PushState} */
  state = "off"
  /** @type {any} */
  error = null
  #options
  #api
  #user
  #registration
  #authorization
  #key
  #last = Date.now()
  #isRepeated = false

  constructor(options) {
    super()
    const { url, user } = options
    this.#options = options
    this.#api = new URL(url, location.href).href.replace(/\/+$/, "")
    this.#user = user == null || user === "" ? null : String(user)
    this.state = supportOf(options) ?? "off"
  }

  static async connect(options) {
    const push = new Push(options)
    if (push.state !== "off") return push
    const again = () => {
      push.#isRepeated = false
      return push.#sync()
    }
    addEventListener("online", again)
    document.addEventListener("visibilitychange", async () => {
      if (!document.hidden && Date.now() - push.#last > week) await again()
    })
    navigator.permissions
      ?.query({ name: "notifications" })
      .then((status) => status.addEventListener("change", again), console.debug)
    if (push.#user !== null) push.#key = push.#askKey().catch(() => undefined)
    await Promise.race([push.#sync({ isLoad: true }), wait(timeout)])
    return push
  }

  /** @param {{ channels?: ReadonlyArray<string> }} options */
  async enable({ channels = [] } = {}) {
    if (["unsupported", "install-first"].includes(this.state)) return this.state
    const isClick = navigator.userActivation?.isActive ?? true
    const permission = await Notification.requestPermission().catch(() => "default")
    if (permission === "granted")
      return this.#sync({ wants: { on: true, join: channels.map(String) } })
    const code = isClick ? "dismissed" : "no-click"
    return this.#publish(permission === "denied" ? null : new BellcastError(code, true))
  }

  disable() {
    return this.#sync({ wants: { on: false, join: [] } })
  }

  async signOut() {
    const user = this.#user
    this.#user = null
    this.#key = undefined
    await this.#sync({ isLoad: true })
    await this.#alone(async () => {
      const record = await this.#record()
      if (user !== null) await this.#removeFormer(record, user)
    }).catch(console.debug)
    return this.state
  }

  async join(channel) {
    await this.#ask("PUT", registrationOf(channel))
  }

  async leave(channel) {
    await this.#ask("DELETE", registrationOf(channel))
  }

  async channels() {
    const names = []
    for (let next = this.#api; next; ) {
      const path = `/registrations${new URL(next).search}`
      const { body, headers } = await this.#ask("GET", path)
      names.push(...body.data.map(({ id }) => id))
      next = headers.get("next-page")
    }
    return names
  }

  /**
   * Makes the device and the service agree, alone among the pages and the worker of the site.
   * @param {{ isLoad?: boolean, wants?: object }} change
   */
  async #sync(change = {}) {
    if (supportOf(this.#options)) return this.state
    this.#last = Date.now()
    try {
      await this.#prepare()
      await this.#alone(() => this.#agree(change))
      this.#isRepeated = false
      return this.#publish(null)
    } catch (cause) {
      const isKnown = cause instanceof BellcastError
      const error = isKnown ? cause : new BellcastError("browser", false, cause)
      if (error.retryable && !this.#isRepeated) {
        this.#isRepeated = true
        setTimeout(() => this.#sync(), error.retryAfter)
      }
      return this.#publish(error)
    }
  }

  async #publish(error) {
    const before = `${this.state} ${this.error?.code}`
    this.state = await this.#look().catch(() => "off")
    this.error = error
    if (before !== `${this.state} ${error?.code}`) this.dispatchEvent(new Event("change"))
    return this.state
  }

  async #look() {
    const { permission } = Notification
    if (permission === "denied") return "denied"
    const record = await this.#record()
    if (!this.#isWanted(record)) return "off"
    if (permission === "default") return "lost"
    const found = await this.#manager.getSubscription()
    return found && found.endpoint === record.endpoint && record.checked > 0 ? "on" : "off"
  }

  #isWanted({ on, user }) {
    return user !== null && user === this.#user && on[user] === true
  }

  get #manager() {
    return this.#registration?.pushManager ?? Object(window).pushManager
  }

  get #scope() {
    return this.#registration?.scope ?? `${location.origin}/`
  }

  /** Waits for the worker of this registration, which need not control the page. */
  async #prepare() {
    const { registration, worker } = this.#options
    if (this.#registration || !(registration || worker)) return
    const asked = async () => registration ?? navigator.serviceWorker.register(worker ?? "")
    const found = await inTime(asked()).catch(fail("worker"))
    for (const end = Date.now() + timeout; !found.active; await wait(50))
      if (Date.now() > end) fail("worker")()
    this.#registration = found
  }

  #alone(task) {
    const { locks } = navigator
    return locks ? locks.request(`bellcast:${this.#scope}`, task) : task()
  }

  /** The record of this worker; `isNew`: the device has none. */
  async #record() {
    let record = await inStore("readonly", (states) => states.get(this.#scope))
    if (!record) {
      const [other] = await inStore("readonly", (states) => states.getAll())
      const { on = {}, user = this.#user } = other ?? {}
      record = { ...none, api: this.#api, user, on, key: null, isNew: !other }
    }
    // No prototype: users may be called `constructor`.
    return { join: [], ...record, former: { __proto__: null, ...record.former } }
  }

  #save(record) {
    return inStore("readwrite", (states) => states.put(record, this.#scope))
  }

  async #agree(/** @type {any} */ { isLoad, wants }) {
    const { isNew = false, ...record } = await this.#record()
    let found = await this.#manager.getSubscription()
    if (isNew && !wants) {
      if (Notification.permission !== "granted" || this.#user === null) return
      if (!(await this.#adopt(record, found))) return
    }
    if (record.user !== this.#user) {
      // A newer page has another user.
      if (!isLoad && !wants) return
      if (!isLoad) throw new BellcastError("user")
      await this.#retire(record, isOurs(found, record) && found, { user: this.#user, join: [] })
      found = await this.#manager.getSubscription()
    }
    if (wants && this.#user === null) throw new BellcastError("user")
    if (wants) {
      Object.assign(record, { on: { ...record.on, [this.#user]: wants.on }, join: wants.join })
      await this.#save(record)
    }
    if (record.api !== this.#api)
      Object.assign(record, { api: this.#api, checked: 0, renewal: null })
    if (this.#isWanted(record)) return this.#turnOn(record, found, wants)
    if (record.endpoint || isOurs(found, record))
      await this.#retire(record, isOurs(found, record) && found)
    if (this.#user !== null) await this.#removeFormer(record, this.#user)
  }

  async #turnOn(record, existing, wants) {
    if (Notification.permission !== "granted") return
    const isKnown = existing && isSame(fieldsOf(existing), record)
    // A clock that was ahead leaves a time in the future.
    const isFresh = Math.abs(Date.now() - record.checked) < fresh
    if (isKnown && isFresh && !wants && record.join.length === 0) return
    const key = (await this.#key) ?? (await this.#askKey())
    this.#key = undefined
    let found = existing
    if (found && (!record.endpoint || keyOf(found) !== key)) {
      await this.#retire(record, found)
      found = null
    }
    for (let tries = 2; tries > 0; tries--) {
      found ??= await this.#subscribe(key)
      await this.#note(record, fieldsOf(found))
      const isNew = record.checked === 0
      const data = dataOf(found)
      if (await this.#store(record, data)) {
        if (isNew) await this.#removeOthers(data)
        delete record.former[record.user]
        record.checked = Date.now()
        await this.#save(record)
        return this.#joinAll(record)
      }
      // Another user holds it, with other keys.
      await this.#retire(record, found)
      found = null
    }
    throw new BellcastError("service")
  }

  /** Lets go of a subscription. The record says so first: the worker must not renew it. */
  async #retire(record, found, changes) {
    const endpoint = record.endpoint ?? (found ? found.endpoint : undefined)
    if (endpoint && record.user !== null) record.former[record.user] = endpoint
    Object.assign(record, none, changes)
    await this.#save(record)
    if (!found) return
    // Firefox forgets a subscription and rejects when it is offline.
    await found.unsubscribe().catch(console.debug)
    if (await this.#manager.getSubscription()) fail("push-service")()
  }

  async #note(record, fields) {
    if (isSame(fields, record)) return
    if (record.endpoint && record.endpoint !== fields.endpoint)
      record.former[record.user] = record.endpoint
    const renewal = record.endpoint === fields.endpoint ? record.renewal : null
    Object.assign(record, fields, { renewal, checked: 0 })
    await this.#save(record)
  }

  #subscribe(applicationServerKey) {
    const options = { userVisibleOnly: true, applicationServerKey }
    return inTime(this.#manager.subscribe(options)).catch(fail("push-service"))
  }

  /**
   * Stores the subscription, also one that is stored: a POST alone ends a suspension. False: another
   * user holds it, with other keys.
   */
  async #store(record, data) {
    const { body, status } = await this.#post(data, record.former[record.user], !record.renewal)
    if (status === 409) return false
    record.renewal = body.renewal ?? record.renewal
    const stored = body.data
    const { auth, p256dh } = data.keys
    if (stored.keys.auth !== auth || stored.keys.p256dh !== p256dh || stored.locale !== data.locale)
      await this.#ask("PUT", await pathOf(data.endpoint), {
        body: { data: { ...stored, ...data } }
      })
    return true
  }

  async #post(data, former, asksForRenewal = false) {
    const headers = asksForRenewal ? { prefer: "renewal" } : {}
    const replaces = former && former !== data.endpoint ? await idOf(former) : undefined
    const accepts = replaces ? [123, 404] : [123]
    const response = await this.#ask("POST", "/subscriptions", {
      body: { data, replaces },
      headers,
      accepts
    })
    return response.status === 404 ? this.#post(data, undefined, asksForRenewal) : response
  }

  /** Subscriptions of other workers of the site, by their scopes. */
  async #others() {
    const others = []
    for (const each of (await navigator.serviceWorker?.getRegistrations()) ?? []) {
      const found = await each.pushManager.getSubscription()
      if (isPush(found) && each.scope !== this.#scope) others.push([each.scope, found])
    }
    return others
  }

  /** The service refuses those of other services, which stay. */
  async #removeOthers(data) {
    for (const [scope, other] of await this.#others()) {
      const { status } = await this.#ask("POST", "/subscriptions", {
        body: { data: dataOf(other) },
        accepts: [400, 123]
      })
      if (status === 400) continue
      await inStore("readwrite", (states) => states.delete(scope))
      if (status !== 409) await this.#post(data, other.endpoint)
      await other.unsubscribe().catch(console.debug)
    }
  }

  /**
   * The first load on a device that got pushes before, by another page or another service: takes
   * over what the service knows as the user's, or by a former key. True if there is anything to do.
   */
  async #adopt(record, own) {
    const others = (await this.#others()).map(([, each]) => each)
    const all = [own, ...others].filter(isPush)
    if (all.length === 0) return false
    const key = (await this.#key) ?? (await this.#askKey())
    for (const each of all) {
      const data = dataOf(each)
      const { status } =
        data.vapid_public_key === key
          ? await this.#ask("GET", await pathOf(data.endpoint), { accepts: [404] })
          : await this.#ask("POST", "/subscriptions", { body: { data }, accepts: [400, 123] })
      if (status < 300) {
        record.on = { ...record.on, [this.#user]: true }
        if (each === own) Object.assign(record, fieldsOf(each))
      } else if (each === own && data.vapid_public_key === key) record.key = key
    }
    return record.key !== null || record.on[this.#user] === true
  }

  async #joinAll(record) {
    let failed
    while (record.join.length > 0) {
      try {
        await this.join(record.join[0])
      } catch (cause) {
        failed = /** @type {BellcastError} */ (cause)
        if (failed.retryable || failed.code === "login") throw failed
      }
      record.join.shift()
      await this.#save(record)
    }
    if (failed) throw failed
  }

  /** Removes from the service what a user left behind here, such as by a logout without network. */
  async #removeFormer(record, user) {
    const endpoint = record.former[user]
    if (!endpoint) return
    await this.#ask("DELETE", await pathOf(endpoint), { accepts: [404], keepalive: true })
    delete record.former[user]
    await this.#save(record)
  }

  async #askKey() {
    const { body } = await this.#ask("GET", "/vapid-public-key", { isPublic: true })
    return body.data.vapid_public_key
  }

  async #login() {
    const { token } = this.#options
    if (!token) return
    const asked = async () => String(await token()).trim()
    const text = await inTime(asked()).catch(fail("offline"))
    if (/^[\w.~+/=-]+$/.test(text)) return `Bearer ${text}`
    if (/^\w+ [!-~]+$/.test(text)) return text
    throw new BellcastError("login")
  }

  /** Sends a request. Rejects for errors whose status and errno are not in `accepts`. */
  async #ask(method, path, options = {}) {
    const { accepts = [], body, headers, isAgain, isPublic, keepalive = false } = options
    if (!isPublic) this.#authorization ??= await this.#login()
    const authorization = isPublic ? undefined : this.#authorization
    const response = await fetch(this.#api + path, {
      method,
      headers: {
        ...(authorization && { authorization }),
        ...(method !== "GET" && { "content-type": "application/json" }),
        ...headers
      },
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(timeout),
      keepalive
    }).catch(fail("offline"))
    const answer = await response.json().catch(() => null)
    const { ok, status } = response
    if (status === 401 && authorization) {
      this.#authorization = undefined
      if (!isAgain) return this.#ask(method, path, { ...options, isAgain: true })
    }
    if (!ok && !accepts.includes(status) && !accepts.includes(answer?.errno))
      throw errorOf(response)
    // The login page of a network, or what a proxy says.
    if (ok && !(answer?.data ?? answer?.code)) throw new BellcastError("service", true, status)
    return { status, headers: response.headers, body: answer }
  }
}

/** @type {typeof import("./client.d.ts").connect} */
export const connect = (options) => Push.connect(options)
