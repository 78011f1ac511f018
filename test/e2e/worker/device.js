// A page that subscribes, and stores on the device what src/browser/README.md says. The record and
// the lock can be read and changed by the test.
import { change, record } from "/records.js"

/** Makes the database anew. */
const remake = (fill) =>
  new Promise((resolve, reject) => {
    indexedDB.deleteDatabase("bellcast")
    const opening = indexedDB.open("bellcast", 1)
    opening.onupgradeneeded = () => fill(opening.result)
    opening.onerror = () => reject(opening.error)
    opening.onsuccess = () => {
      opening.result.close()
      resolve()
    }
  })

const registration = () => navigator.serviceWorker.ready

/** Subscribes this browser for a user who joins a channel. */
const enable = async (api, user, channel, type = "classic") => {
  await navigator.serviceWorker.register("/worker.js", { type })
  const { pushManager } = await registration()
  const key = (await (await fetch(`${api}/vapid-public-key`)).json()).data.vapid_public_key
  const subscription = (
    await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key })
  ).toJSON()
  const headers = {
    authorization: `Basic ${btoa(`${user}:secret`)}`,
    "content-type": "application/json",
    prefer: "renewal"
  }
  const body = JSON.stringify({ data: { ...subscription, vapid_public_key: key } })
  const response = await fetch(`${api}/subscriptions`, { method: "POST", headers, body })
  const { renewal } = await response.json()
  await fetch(`${api}/channels/${channel}/registration`, { method: "PUT", headers })
  const { endpoint, keys } = subscription
  await change({ api, user, on: { [user]: true }, key, endpoint, ...keys, renewal, checked: 0 })
  return endpoint
}

/** Titles and texts of all notifications; they are closed. */
const taken = async () =>
  (await (await registration()).getNotifications()).map((each) => {
    each.close()
    return `${each.title}: ${each.body}`
  })

/** Endpoint of the browser's subscription, or undefined. */
const endpoint = async () => (await (await registration()).pushManager.getSubscription())?.endpoint

const unsubscribe = async () =>
  (await (await registration()).pushManager.getSubscription())?.unsubscribe()

/** Holds the lock of page and worker until `unlock()`. */
let unlock
const lock = () =>
  new Promise((resolve) => {
    navigator.locks.request(`bellcast:${location.origin}/`, () => {
      resolve()
      return new Promise((release) => {
        unlock = release
      })
    })
  })

/** How many wait for it. */
const waiting = async () => (await navigator.locks.query()).pending.length

const messages = []
navigator.serviceWorker.addEventListener("message", ({ data }) => messages.push(data))
navigator.serviceWorker.startMessages()

window.device = {
  change,
  enable,
  endpoint,
  lock,
  messages,
  record,
  remake,
  taken,
  unlock: () => unlock(),
  unsubscribe,
  waiting
}
