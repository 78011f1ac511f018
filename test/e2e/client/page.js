// A page that connects, and shows the test what there is on the device.
import { connect } from "/client.js"
import { change, inStore, record } from "/records.js"

const scopes = () => inStore("readonly", (states) => states.getAllKeys())

const manager = async (at = "/") => (await navigator.serviceWorker.getRegistration(at))?.pushManager
const subscription = async (at) => (await manager(at))?.getSubscription()
/** Of all workers. */
const endpoints = async () => {
  const all = await navigator.serviceWorker.getRegistrations()
  const found = await Promise.all(all.map(({ pushManager }) => pushManager.getSubscription()))
  return found.filter(Boolean).map((each) => each.endpoint)
}
const endpoint = async (at) => (await subscription(at))?.endpoint ?? null

/** Subscribes without the client, by a worker that is active. */
const subscribe = async (applicationServerKey, at) => {
  const options = { userVisibleOnly: true, applicationServerKey }
  return (await (await manager(at)).subscribe(options)).toJSON()
}

/** The same by a worker that is not there yet. */
const subscribeBy = async (at, applicationServerKey) => {
  const { active, installing } = await navigator.serviceWorker.register(`${at}worker.js`)
  if (!active)
    await new Promise((resolve) => {
      installing.onstatechange = () => installing.state === "activated" && resolve()
    })
  return subscribe(applicationServerKey, at)
}

const notifications = async () =>
  (await navigator.serviceWorker.getRegistration("/")).getNotifications()
const titles = async () => (await notifications()).map(({ title }) => title)

/** Titles of all notifications; they are closed. */
const taken = async () => {
  const all = await notifications()
  for (const each of all) each.close()
  return all.map(({ title }) => title)
}

/** Shows a notification of the site itself. */
const show = async (title) =>
  (await navigator.serviceWorker.getRegistration("/")).showNotification(title)

/** Leaves nothing for the next test. */
const clear = async () => {
  for (const registration of await navigator.serviceWorker.getRegistrations()) {
    for (const each of await registration.getNotifications()) each.close()
    await (await registration.pushManager.getSubscription())?.unsubscribe()
    await registration.unregister()
  }
  await inStore("readwrite", (states) => states.clear())
}

const shown = () => {
  const { error, state } = window.push
  return { state, error: error && { code: error.code, retryable: error.retryable } }
}

let asked = 0
const changes = []
const busy = []

window.device = {
  busy,
  change,
  changes,
  clear,
  endpoint,
  endpoints,
  record,
  scopes,
  show,
  shown,
  subscribe,
  subscribeBy,
  taken,
  titles,
  tokensAsked: () => asked,
  unsubscribe: async () => (await subscription())?.unsubscribe(),
  connect: async (options, tokens) => {
    const token = async () => tokens[Math.min(asked++, tokens.length - 1)]
    window.push = await connect({ ...options, token })
    window.push.addEventListener("change", () => {
      changes.push(shown())
      busy.push(window.push.busy)
    })
    return shown()
  }
}

// Without a click. Until the address says that it is done, the test must not evaluate anything in
// the page: that would count as a click.
const given = new URLSearchParams(location.search).get("enable")
if (given !== null) {
  window.push = await connect(JSON.parse(given))
  await window.push.enable()
  location.hash = "enabled"
}
