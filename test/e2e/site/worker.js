// The service worker: shows every push, sends it unchanged to the page, and subscribes again when
// the browser lost its subscription.
importScripts("api.js")

self.addEventListener("install", () => self.skipWaiting())
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()))

const tell = async (message) => {
  for (const client of await self.clients.matchAll({ includeUncontrolled: true }))
    client.postMessage(message)
}

/** Title and text to show: of the declarative shape, or of a flat object, or of nothing. */
const contentOf = (data) => {
  const { notification, ...flat } = data?.json() ?? {}
  const { title = "A push", body = "" } = notification ?? flat
  return [title, { body, tag: title }]
}

self.addEventListener("push", (event) => {
  const text = event.data === null ? null : event.data.text()
  event.waitUntil(
    self.registration
      .showNotification(...contentOf(event.data))
      .then(() => tell({ type: "push", text }))
  )
})

self.addEventListener("pushsubscriptionchange", (event) => {
  const { oldSubscription, newSubscription } = event
  const lost = oldSubscription?.endpoint ?? null
  event.waitUntil(
    api
      .subscribe(self.registration)
      .then(({ endpoint, status }) =>
        tell({ type: "resubscribed", status, endpoint, lost, newSubscription })
      )
  )
})
