// Bellcast's client. See client.d.ts.

const second = 1000
const timeout = 10 * second
const day = 24 * 3600 * second

const wait = (millis) => new Promise((resolve) => setTimeout(resolve, millis))

class BellcastError extends Error {
  /** @param {any} [cause] */
  constructor(code, retryable = false, cause, retryAfter = 0) {
    super(`Bellcast: ${code}`, { cause })
    Object.assign(this, { code, retryable, retryAfter: (+retryAfter || 2) * second })
  }
}

const fail = (code) => (cause) => {
  throw cause instanceof BellcastError ? cause : new BellcastError(code, true, cause)
}

const limit = "limit"
const offline = "offline"
const codes = {
  401: "login",
  403: "forbidden",
  413: limit,
  429: limit,
  502: offline,
  503: offline,
  504: offline,
  507: limit
}

const errorOf = ({ headers, status }) => {
  const retryAfter = headers.get("retry-after")
  const retryable = retryAfter !== null || status >= 500
  return new BellcastError(codes[status] ?? "service", retryable, status, retryAfter)
}

const done = (request, event) =>
  new Promise((resolve, reject) => {
    setTimeout(reject, timeout)
    request[event] = () => resolve(request.result)
    request.onerror = request.onabort = () => reject(request.error)
  })

const inStore = async (ask, mode) => {
  const opening = indexedDB.open("bellcast", 1)
  opening.onupgradeneeded = () => opening.result.createObjectStore("state")
  const database = await done(opening, "onsuccess")
  try {
    const transaction = database.transaction("state", mode)
    const request = ask(transaction.objectStore("state"))
    await done(transaction, "oncomplete")
    return request.result
  } finally {
    database.close()
  }
}

/** Empty without a subscription or a key. */
const keyOf = (found) =>
  btoa(String.fromCharCode(...new Uint8Array(found?.options.applicationServerKey)))
    .replace(/\+/g, "-")
    .replace(/\//g, "_")
    .replace(/=/g, "")

const localeOf = () => {
  try {
    return Intl.getCanonicalLocales(navigator.language.split("@", 1))[0]
  } catch {}
}

const dataOf = (subscription) => ({
  ...subscription.toJSON(),
  vapid_public_key: keyOf(subscription),
  locale: localeOf()
})

const fieldsOf = (subscription) => {
  const { endpoint, keys } = subscription.toJSON()
  return { endpoint, ...keys }
}

const isSame = (fields, record) =>
  Object.entries(fields).every(([name, value]) => record[name] === value)

const idOf = async (endpoint) => {
  const text = JSON.stringify(endpoint.replace(/(\/fcm.googleapis.com).wp/, "$1/fcm/send"))
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))
  return [...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, "0")).join("")
}

const registrationOf = (channel) => {
  try {
    // Browsers take dots for folders.
    if (!/^\.{0,2}$/.test(channel)) return `/channels/${encodeURIComponent(channel)}/registration`
  } catch {}
  throw new BellcastError("service", false, 400)
}

/** For users called `constructor`. */
const bare = (users) => ({ __proto__: null, ...users })

const none = { endpoint: null, p256dh: null, auth: null, renewal: null, checked: 0 }

const supportOf = (options) => {
  const { serviceWorker, standalone } = Object(navigator)
  const { Notification, PushManager, pushManager } = Object(window)
  const manager = options.worker || options.registration ? serviceWorker : pushManager
  if (Notification && PushManager && manager) return
  return standalone === false ? "install-first" : "unsupported"
}

let latest, pages, checkedAt

// A worker that is about to open a page asks what each one shows.
globalThis.navigator?.serviceWorker?.addEventListener("message", ({ data, ports }) => {
  if (data?.bellcast === "address") ports[0]?.postMessage(location.href)
})

class Push extends EventTarget {
  state
  /** @type {any} */
  error = null
  busy = false
  #calls = 0
  #options
  #api
  #user
  #registration
  #isReady
  #isAsking
  /** A full check, however short ago the last one was. Until the record says so. */
  #isDue
  /** Since the other pages were told. */
  #hasSaved
  #permission
  #authorization
  #key
  #loaded = Date.now()
  /** The wish of a button, until it is stored. */
  #wants
  #listening = new AbortController()
  #requests = new AbortController()

  constructor(options) {
    super()
    this.#options = options
    this.#isReady = !(options.worker || options.registration)
    this.#api = new URL(options.url, location.href).href.replace(/\/+$/, "")
    this.#user = String(options.user ?? "") || null
    this.state = supportOf(options) ?? "off"
  }

  static async connect(options) {
    const push = new Push(options)
    if (push.state !== "off") return push
    const again = () => push.#sync()
    if (latest) {
      latest.#loaded = 0
      latest.#listening.abort()
    } else {
      const look = () => !document.hidden && Date.now() - checkedAt > day && latest.#sync()
      document.addEventListener("visibilitychange", look)
      setInterval(look, timeout)
    }
    latest = push
    try {
      pages ??= new BroadcastChannel("bellcast")
      pages.onmessage = ({ data }) => push.#hear(data)
    } catch {}
    const { signal } = push.#listening
    addEventListener("online", again, { signal })
    addEventListener("pageshow", ({ persisted }) => persisted && again(), { signal })
    const changed = () => push.#isAsking || again()
    const watch = (status) => {
      push.#permission = status
      status.addEventListener("change", changed, { signal })
    }
    navigator.permissions?.query({ name: "notifications" }).then(watch, console.debug)
    if (push.#user) push.#serviceKey().catch(console.debug)
    if (!(await Promise.race([push.#sync(), wait(timeout)])))
      await Promise.race([push.#publish(push.error), wait(second)])
    return push
  }

  async enable(options) {
    const channels = Object(options).channels ?? []
    if (supportOf(this.#options) || !this.#user) return this.#want()
    const join = Object.fromEntries(channels.map((each) => [each, true]))
    const isClick = navigator.userActivation?.isActive ?? true
    this.#isAsking = true
    const permission = isClick ? await this.#answer() : Notification.permission
    const code = isClick ? "dismissed" : "no-click"
    if (permission === "granted") await this.#want(true, join)
    else await this.#publish(permission === "denied" ? null : new BellcastError(code, true))
    this.#isAsking = false
    return this.state
  }

  /** The question may stay open, while the permission is granted elsewhere. */
  #answer() {
    return new Promise((resolve) => {
      const look = () => resolve(Notification.permission)
      this.#permission?.addEventListener("change", look, { once: true })
      Notification.requestPermission().then(resolve, look)
    })
  }

  disable() {
    return this.#want()
  }

  check() {
    this.#isDue = true
    return this.#busyWith(this.#sync())
  }

  async #busyWith(work) {
    const count = (by) => {
      this.#calls += by
      const busy = this.#calls > 0
      if (busy === this.busy) return
      this.busy = busy
      this.dispatchEvent(new Event("change"))
    }
    count(1)
    return work.finally(() => count(-1))
  }

  async #want(on = false, join = {}) {
    if (supportOf(this.#options)) return this.state
    if (!this.#user || this.#user !== latest.#user) return this.#publish(new BellcastError("user"))
    this.#wants = { on, join: { ...(on && this.#wants?.join), ...join } }
    return this.#busyWith(this.#sync())
  }

  signOut() {
    return this.#busyWith(this.#signOut())
  }

  async #signOut() {
    const user = this.#user
    this.#user = null
    this.#wants = undefined
    this.#giveUp()
    this.#loaded = Date.now()
    pages?.postMessage({})
    await this.#sync()
    const tell = async () => {
      const endpoint = (await this.#record()).former[user ?? ""]
      if (endpoint) await this.#remove(endpoint)
    }
    await Promise.race([tell().catch(console.debug), wait(second)])
    return this.state
  }

  #giveUp() {
    this.#requests.abort(new BellcastError("user", true))
    this.#requests = new AbortController()
  }

  async join(channel) {
    await this.#ask("PUT", registrationOf(channel))
  }

  async leave(channel) {
    const path = registrationOf(channel)
    delete this.#wants?.join[channel]
    const forget = async () => {
      const record = await this.#record()
      const channels = Object(record.join[this.#user])
      if (!channels[channel]) return
      delete channels[channel]
      await this.#save(record)
    }
    await this.#alone(forget).catch(console.debug)
    await this.#ask("DELETE", path)
  }

  async channels() {
    const names = []
    for (let next = this.#api; next; ) {
      const { search } = new URL(next)
      const { body, headers } = await this.#ask("GET", `/registrations${search}`)
      for (const { id } of body.data) names.push(id)
      next = headers.get("next-page")
    }
    return names
  }

  async #sync(isRepeated = false) {
    if (supportOf(this.#options)) return this.state
    checkedAt = Date.now()
    let error
    try {
      await this.#prepare()
      await this.#alone(() => this.#agree())
    } catch (cause) {
      error = cause instanceof BellcastError ? cause : new BellcastError("browser", false, cause)
      // Users who want no pushes get none, also without the worker or storage.
      if (error.code === "worker") await this.#retreat().catch(console.debug)
      if (error.code === "browser" && (!this.#user || this.#wants?.on === false))
        await this.#end(await this.#found.catch(console.debug))
      if (error.retryable && !isRepeated) setTimeout(() => this.#sync(true), error.retryAfter)
    }
    this.#key = undefined
    const state = await this.#publish(error)
    if (this.#hasSaved) pages?.postMessage({ user: this.#user, isDone: !error })
    this.#hasSaved = false
    return state
  }

  /** From another page: of a logout that begins, or of what was stored. */
  #hear({ isDone, user }) {
    if (isDone !== undefined)
      return this.#publish(isDone && user === this.#user ? null : this.error)
    if (this.#user) this.#giveUp()
  }

  async #publish(error) {
    const state = await this.#look().catch(() => "off")
    const isChanged = state !== this.state || error?.code !== this.error?.code
    Object.assign(this, { error: error ?? null, state })
    if (isChanged) this.dispatchEvent(new Event("change"))
    return state
  }

  async #look() {
    const { permission } = Notification
    if (permission === "denied") return "denied"
    const record = await this.#record()
    if (!this.#isWanted(record)) return "off"
    if (permission === "default") return "lost"
    const found = await this.#found
    return found?.endpoint === record.endpoint && record.checked > 0 ? "on" : "off"
  }

  #isWanted({ on, user }) {
    return user && user === this.#user && on[user] === true
  }

  get #manager() {
    return this.#registration?.pushManager ?? Object(window).pushManager
  }

  get #found() {
    return this.#inTime(this.#manager.getSubscription())
  }

  /** Firefox forgets it offline and rejects. */
  #end(found) {
    return this.#inTime(found?.unsubscribe()).catch(console.debug)
  }

  get #scope() {
    return this.#registration?.scope ?? `${location.origin}/`
  }

  async #prepare() {
    const { registration, worker } = this.#options
    if (this.#isReady) return
    const begin = Date.now()
    const asked = async () => registration ?? navigator.serviceWorker.register(worker)
    const found = await this.#inTime(asked()).catch(fail("worker"))
    for (; !found?.active; await wait(50)) if (Date.now() - begin > timeout) fail("worker")()
    this.#registration = found
    this.#isReady = true
  }

  async #retreat() {
    const [scope] = await inStore((states) => states.getAllKeys())
    if (!scope) return
    this.#registration ??= await navigator.serviceWorker.getRegistration(scope)
    await this.#alone(() => this.#agree())
  }

  /** Rejects after 10 s, and at `signOut`. */
  #inTime(given) {
    const { signal } = this.#requests
    return new Promise((resolve, reject) => {
      const stop = () => reject(signal.reason)
      signal.addEventListener("abort", stop, { signal: AbortSignal.timeout(timeout) })
      setTimeout(reject, timeout)
      given.then(resolve, reject)
    })
  }

  #alone(task) {
    const { signal } = this.#requests
    return navigator.locks?.request(`bellcast:${this.#scope}`, { signal }, task) ?? task()
  }

  /** The worker's record, else one made from another's; `isNew`: from none. */
  async #record() {
    let record = await inStore((states) => states.get(this.#scope))
    if (!record) {
      const [other] = await inStore((states) => states.getAll())
      const made = { user: this.#user, since: this.#loaded, on: {}, key: null, ...other }
      record = { ...made, ...none, api: this.#api, isNew: !other }
      const { endpoint, former, user } = made
      if (endpoint) record.former = { ...former, [user]: endpoint }
    }
    const { on, former, join } = record
    return { ...record, on: bare(on), former: bare(former), join: bare(join) }
  }

  #save(record) {
    this.#hasSaved = true
    return inStore((states) => {
      states.clear()
      return states.put(record, this.#scope)
    }, "readwrite")
  }

  async #agree() {
    const { isNew, ...record } = await this.#record()
    const user = this.#user
    const wants = this.#wants
    if (record.user !== user) {
      // The clock may have been ahead.
      if (record.since > this.#loaded && record.since < Date.now()) {
        this.#wants = undefined
        if (wants) throw new BellcastError("user")
        return
      }
      await this.#leave(record, { user, since: this.#loaded }).finally(() => this.#clear())
    }
    record.since = Math.max(record.since, this.#loaded)
    if (!this.#isReady && (wants?.on ?? this.#isWanted(record))) return
    if (record.checked && (wants || this.#isDue)) {
      // Later loads and retries check fully, too, until one succeeds.
      record.checked = 1
      await this.#save(record)
    }
    this.#isDue = false
    const found = await this.#found
    if (wants) {
      const claimed = isNew && !wants.on ? await this.#claim(record, true) : []
      record.on[user] = wants.on
      record.join[user] = { ...(wants.on && record.join[user]), ...wants.join }
      await this.#save(record)
      for (const each of claimed) await this.#remove(each)
      if (this.#wants === wants) this.#wants = undefined
    } else if (isNew) {
      if (Notification.permission !== "granted" || !this.#options.user) return
      const claimed = user ? await this.#claim(record, this.#options.adopt) : []
      if (claimed[0]) record.on = { [user]: true }
      else if ((await this.#all())[0]) record.key ??= await this.#serviceKey()
    }
    if (record.api !== this.#api)
      Object.assign(record, { api: this.#api, checked: 0, renewal: null })
    if (this.#isWanted(record)) return this.#turnOn(record, found, wants)
    await this.#leave(record)
    if (!user || !this.#options.adopt) return
    const claimed = await this.#claim(record, true)
    for (const each of claimed) await this.#remove(each)
    if (claimed[0]) await this.#leave(record)
  }

  /** Safari's have `navigate` and no data. */
  async #clear() {
    for (const each of (await this.#registration?.getNotifications()) ?? [])
      if (each.data?.bellcast ?? each.navigate) each.close()
  }

  async #turnOn(record, existing, wants) {
    if (Notification.permission !== "granted") return
    const key = await this.#serviceKey()
    const seen = existing && { ...fieldsOf(existing), key, locale: localeOf() }
    // The clock may have been ahead.
    const isRecent = Math.abs(Date.now() - record.checked) < day
    if (seen && isSame(seen, record) && isRecent) return this.#joinAll(record)
    const isDone = record.checked && !wants && !this.#options.adopt
    const claimed = isDone ? [] : await this.#claim(record, true)
    for (const each of claimed) {
      record.former[record.user] = each
      await this.#save(record)
    }
    let found = existing
    if (keyOf(found) !== key || !(record.endpoint || claimed.includes(found.endpoint))) {
      if (found) await this.#retire(record, [found])
      const options = { userVisibleOnly: true, applicationServerKey: key }
      found = await this.#inTime(this.#manager.subscribe(options)).catch(fail("push-service"))
    }
    await this.#note(record, fieldsOf(found), key)
    const data = dataOf(found)
    if (!(await this.#store(record, data))) {
      await this.#retire(record, [found])
      if (!existing) throw new BellcastError("service")
      return this.#turnOn(record)
    }
    for (const each of await this.#all()) {
      const { endpoint } = each
      if (endpoint !== data.endpoint && (keyOf(each) === key || claimed.includes(endpoint))) {
        await this.#store(record, data, endpoint)
        await this.#end(each)
      }
    }
    delete record.former[record.user]
    Object.assign(record, { key, locale: data.locale, checked: Date.now() })
    await this.#save(record)
    return this.#joinAll(record)
  }

  async #leave(record, changes) {
    if (record.on[record.user]) record.key ??= await this.#serviceKey()
    const ours = async () => (await this.#all()).filter((each) => record.key?.includes(keyOf(each)))
    const all = await ours()
    if (changes || record.endpoint || all[0]) await this.#retire(record, all, changes)
    const former = !changes && record.former[record.user ?? ""]
    if (former) {
      await this.#remove(former)
      delete record.former[record.user]
      await this.#save(record)
    }
    if ((await ours())[0]) fail("push-service")()
  }

  async #retire(record, all, changes) {
    const endpoint = record.endpoint ?? all[0]?.endpoint
    if (endpoint && record.user) record.former[record.user] = endpoint
    Object.assign(record, none, changes)
    await this.#save(record)
    for (const each of all) await this.#end(each)
  }

  async #note(record, fields, key) {
    if (isSame(fields, record)) return
    const { endpoint } = record
    if (endpoint !== fields.endpoint) {
      if (endpoint) record.former[record.user] = endpoint
      record.renewal = null
    }
    Object.assign(record, fields, { key: [record.key, key].join(), checked: 0 })
    await this.#save(record)
  }

  /** False: another user has other keys. */
  async #store(record, data, former = record.former[record.user]) {
    const replaces = former && former !== data.endpoint ? await idOf(former) : undefined
    const { body, status } = await this.#ask("POST", "/subscriptions", {
      accepts: replaces ? [123, 404] : [123],
      body: { data, replaces },
      headers: record.renewal ? {} : { prefer: "renewal" }
    })
    if (status === 409) return false
    // The service removed it, with its secret.
    if (status > 200 && !body?.renewal) {
      record.renewal = null
      await this.#save(record)
      return this.#store(record, data, "")
    }
    record.renewal = body.renewal ?? record.renewal
    const stored = body.data
    if (!isSame(data.keys, stored.keys) || stored.locale !== data.locale)
      await this.#ask("PUT", `/subscriptions/${stored.id}`, {
        body: { data: { ...stored, ...data } }
      })
    return true
  }

  async #all() {
    const all = [await this.#found]
    for (const each of (await navigator.serviceWorker?.getRegistrations()) ?? [])
      if (each.scope !== this.#scope)
        all.push(await this.#inTime(each.pushManager.getSubscription()))
    return all.filter(keyOf)
  }

  async #claim(record, moves) {
    const claimed = []
    for (const each of await this.#all()) {
      const { endpoint } = each
      const key = keyOf(each)
      const data = dataOf(each)
      const { status } =
        moves && key !== (await this.#serviceKey())
          ? await this.#ask("POST", "/subscriptions", { body: { data }, accepts: [400, 403, 123] })
          : await this.#ask("GET", `/subscriptions/${await idOf(endpoint)}`, { accepts: [404] })
      if (status < 300) {
        claimed.push(endpoint)
        if (!record.key?.includes(key)) record.key = [record.key, key].join()
      }
    }
    return claimed
  }

  async #joinAll(record) {
    const channels = record.join[record.user]
    let failed
    for (const channel in channels) {
      await this.join(channel).catch((error) => {
        if (error.retryable || error.code === "login") throw error
        failed = error
      })
      delete channels[channel]
      await this.#save(record)
    }
    if (failed) throw failed
  }

  async #remove(endpoint) {
    const path = `/subscriptions/${await idOf(endpoint)}`
    await this.#ask("DELETE", path, { accepts: [404], keepalive: true })
  }

  async #serviceKey() {
    this.#key ??= this.#ask("GET", "/vapid-public-key", { isPublic: true })
    return (await this.#key).body.data.vapid_public_key
  }

  async #login() {
    const { token } = this.#options
    if (!token) return
    const failed = (cause) => fail(cause instanceof TypeError ? offline : "token")(cause)
    const asked = async () => String((await token()) ?? "").trim()
    const text = await this.#inTime(asked().catch(failed)).catch(fail(offline))
    if (/^[\w.~+/=-]+$/.test(text)) return `Bearer ${text}`
    if (/^\w+ [!-~]+$/.test(text)) return text
    throw new BellcastError("login")
  }

  /** `accepts`: statuses and errnos of errors. */
  async #ask(method, path, options = {}) {
    const { accepts = [], isAgain, isPublic, keepalive } = options
    if (!isPublic) this.#authorization ??= await this.#login()
    const authorization = !isPublic && this.#authorization
    const sent = fetch(this.#api + path, {
      method,
      headers: {
        ...(authorization && { authorization }),
        ...(method !== "GET" && { "content-type": "application/json" }),
        ...options.headers
      },
      body: JSON.stringify(options.body),
      // Cookies are for a proxy that knows its users by them.
      credentials: this.#options.token ? "omit" : "same-origin",
      signal: AbortSignal.timeout(timeout),
      keepalive
    })
    const response = await this.#inTime(sent).catch(fail(offline))
    const body = await this.#inTime(response.json()).catch(() => null)
    const { headers, ok, status } = response
    if (status === 401 && authorization) {
      this.#authorization = undefined
      if (!isAgain) return this.#ask(method, path, { ...options, isAgain: true })
    }
    if (!ok && !accepts.includes(status) && !accepts.includes(body?.errno)) throw errorOf(response)
    // A network may answer with its login page.
    if (ok && !(body?.data ?? body?.code)) throw new BellcastError("service", true, status)
    return { body, headers, status }
  }
}

/** @type {typeof import("../types/client.d.ts").connect} */
export const connect = (options) => Push.connect(options)
