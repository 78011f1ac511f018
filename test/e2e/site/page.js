// The page: subscribes, registers, and records the messages of its worker in order, for the test.
const arrived = []
const takers = []

navigator.serviceWorker.addEventListener("message", ({ data }) => {
  const line = document.createElement("li")
  line.textContent = JSON.stringify(data).slice(0, 300)
  document.querySelector("#arrived").append(line)
  const taker = takers.shift()
  if (taker === undefined) arrived.push(data)
  else taker(data)
})

/**
 * Resolves with the next message of the worker. Rejects after 25 s: puppeteer gives up a call to
 * the page after 30 s.
 */
const next = () => {
  if (arrived.length > 0) return arrived.shift()
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("the worker said nothing for 25 s")), 25_000)
    takers.push((data) => {
      clearTimeout(timer)
      resolve(data)
    })
  })
}

/** What a page does on every load: idempotent. */
const join = async (channel) => {
  await navigator.serviceWorker.register(`worker.js${location.search}`)
  const { endpoint, status } = await api.subscribe(await navigator.serviceWorker.ready)
  const registered = await api.call("PUT", `/channels/${channel}/registration`)
  return { endpoint, subscribed: status, registered: registered.status }
}

const unsubscribe = async () => {
  const registration = await navigator.serviceWorker.ready
  return (await registration.pushManager.getSubscription()).unsubscribe()
}

const endpoints = async () =>
  (await api.call("GET", "/subscriptions")).body.data.map(({ endpoint }) => endpoint)

const notifications = async () => {
  const shown = await (await navigator.serviceWorker.ready).getNotifications()
  return shown.map(({ title, body }) => ({ title, body }))
}

window.site = { next, join, unsubscribe, endpoints, notifications, unread: () => arrived.length }
