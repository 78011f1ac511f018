// Bellcast's worker. See worker.d.ts.
{
  const worker = /** @type {ServiceWorkerGlobalScope} */ (/** @type {unknown} */ (self))
  const { clients, registration } = worker
  const timeout = 10_000
  const scope = registration.scope

  /** @param {number} millis @returns {Promise<undefined>} */
  const wait = (millis) => new Promise((resolve) => setTimeout(resolve, millis))

  /**
   * @param {"onpush" | "onclick"} name
   * @param {number} millis
   * @param {[any, any]} given
   * @returns {Promise<any>}
   */
  const hook = async (name, millis, ...given) => {
    if (!worker.bellcast?.[name]) return
    const run = async () => worker.bellcast?.[name]?.(...given)
    return Promise.race([run(), wait(millis)]).catch(console.error)
  }

  /** @param {any} address */
  const httpUrl = (address) => {
    try {
      const { href, protocol } = new URL(address, scope)
      return address && /^https?:$/.test(protocol) ? href : undefined
    } catch {}
  }

  /** @param {any} title */
  const isTitle = (title) => typeof title === "string" && title !== ""

  /** @param {any} event @returns {BellcastContent} */
  const contentOf = ({ data, notification, appBadge: app_badge }) => {
    let sent
    try {
      sent = data ? data.json() : { notification, app_badge }
    } catch {}
    const members = [sent?.notification, sent].find((each) => each && typeof each === "object")
    const given = []
    // Members of a Notification are inherited.
    for (const name in members) if (members[name] != null) given.push([name, members[name]])
    /** @type {BellcastContent} */
    const content = Object.fromEntries(given)
    content.app_badge = sent?.app_badge ?? content.app_badge
    if (!isTitle(content.title)) content.title = worker.bellcast?.name ?? worker.location.host
    return content
  }

  /** @param {BellcastContent} content */
  const show = async ({ title = "", data, navigate, url, ...options }) => {
    const target = httpUrl(navigate ?? url)
    const targets = (options.actions ?? []).map((each) => [
      each.action,
      httpUrl(each.navigate ?? each.url)
    ])
    await registration.showNotification(title, {
      ...options,
      ...(target && !worker.bellcast?.onclick && { navigate: target }),
      data: { bellcast: { target, targets, data } }
    })
  }

  /** @param {PushEvent} event */
  const push = async (event) => {
    const original = contentOf(event)
    const changed = await hook("onpush", 3000, contentOf(event), event)
    const content = isTitle(changed?.title) ? changed : original
    const { title, body, navigate, url } = original
    await show(content)
      .catch(() => show(original))
      .catch(() => show(/** @type {{}} */ ({ title, body, navigate, url })))
    const { setAppBadge, userAgent } = /** @type {any} */ (worker.navigator)
    if (content.app_badge != null)
      await setAppBadge?.call(worker.navigator, +content.app_badge).catch(console.error)
    if (/Mac.*Chrome/.test(userAgent)) await wait(1000)
  }

  /** @param {boolean} includeUncontrolled */
  const windows = async (includeUncontrolled) =>
    (await clients.matchAll({ type: "window", includeUncontrolled })).filter(
      ({ frameType }) => frameType !== "nested"
    )

  /** All pages, and what they show: `url` of a client is where the page began. */
  const look = async () =>
    Promise.all(
      (await windows(true)).map((page) => {
        const { port1, port2 } = new MessageChannel()
        const told = new Promise((resolve) => {
          port1.onmessage = ({ data }) => resolve(data)
        })
        page.postMessage({ bellcast: "address" }, [port2])
        return Promise.race([told, wait(250)]).then((shows) => ({ page, shows }))
      })
    )

  /** @param {string | undefined} url @param {ReturnType<typeof look>} pages */
  const open = async (url, pages) => {
    try {
      const there = (await pages).find(({ shows }) => !url || shows === url)
      if (there) return await there.page.focus()
      const [controlled] = worker.bellcast?.reuse ? await windows(false) : []
      if (url && controlled && new URL(url).origin === worker.location.origin) {
        await controlled.focus()
        return await controlled.navigate(url)
      }
    } catch {}
    return clients.openWindow(url ?? httpUrl(worker.bellcast?.home ?? "/") ?? "/")
  }

  /** @param {NotificationEvent} event */
  const click = async (event) => {
    const { action, notification } = event
    notification.close()
    // Notifications outlive workers: a former one may have stored another form, such as an object.
    const { target, targets, data } = Object(notification.data.bellcast)
    const entries = Array.isArray(targets) ? targets : Object.entries(targets ?? {})
    /** @type {Map<any, any>} */
    const addresses = new Map(/** @type {any} */ (entries.filter(Array.isArray)))
    const url = httpUrl(addresses.get(action) ?? target)
    const pages = look()
    const answer = await hook("onclick", 500, { action, url, data }, event)
    if (answer !== false) await open(httpUrl(answer) ?? url, pages)
  }

  /** @param {IDBTransactionMode} mode @param {(states: IDBObjectStore) => IDBRequest} use */
  const stored = (mode, use) =>
    /** @type {Promise<any>} */ (
      new Promise((resolve, reject) => {
        const opening = indexedDB.open("bellcast", 1)
        opening.onupgradeneeded = () => opening.result.createObjectStore("state")
        opening.onerror = () => reject(opening.error)
        opening.onsuccess = () => {
          try {
            const transaction = opening.result.transaction("state", mode)
            const request = use(transaction.objectStore("state"))
            transaction.oncomplete = () => resolve(request.result)
            transaction.onabort = () => reject(transaction.error)
          } catch (error) {
            reject(error)
          }
          opening.result.close()
        }
      })
    )

  const renew = async () => {
    const state = await stored("readonly", (states) => states.get(scope))
    if (!state?.renewal || state.on[state.user] !== true) return
    const { pushManager } = registration
    const [key] = state.key.split(",")
    const options = { userVisibleOnly: true, applicationServerKey: key }
    const subscription =
      (await pushManager.getSubscription()) ??
      // Chromium may wait for ever, and pages for the lock.
      (await Promise.race([pushManager.subscribe(options), wait(timeout)]))
    if (!subscription) throw new Error("push-service")
    const { endpoint, keys } = subscription.toJSON()
    if (endpoint === state.endpoint) return
    const response = await fetch(`${state.api}/subscriptions/replace`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      credentials: "omit",
      signal: AbortSignal.timeout(timeout),
      body: JSON.stringify({
        renewal: state.renewal,
        data: { endpoint, keys, vapid_public_key: key }
      })
    })
    // Errno 121: the service refuses the secret. A network may answer with its login page.
    const { errno, renewal = errno === 121 ? null : undefined } = await response.json()
    if (renewal === undefined) throw new Error(`${response.status}`)
    const changed = renewal ? { endpoint, ...keys, renewal } : { renewal }
    await stored("readwrite", (states) => {
      const request = states.get(scope)
      // A page of another scope may have taken the record over.
      request.onsuccess = () =>
        request.result?.renewal === state.renewal && states.put({ ...state, ...changed }, scope)
      return request
    })
  }

  const renewAlone = async () => {
    const { locks } = worker.navigator
    return locks ? locks.request(`bellcast:${scope}`, renew) : renew()
  }

  worker.addEventListener("push", (event) => event.waitUntil(push(event)))
  worker.addEventListener("notificationclick", (event) => {
    if (event.notification.data?.bellcast) event.waitUntil(click(event))
  })
  worker.addEventListener("pushsubscriptionchange", (event) =>
    event.waitUntil(renewAlone().catch(() => wait(5000).then(renewAlone)))
  )
}
