// The devices of the user, as the service has them.
import { at, button, fill, make } from "./elements.js"
import { ask, isRemoved, test, user } from "./site.js"

/** The id of the subscription of this browser, when it was last seen. */
let ownId
/** @type {import("../client.js").Push} */
let push

export const subscription = async () => {
  const registration = await navigator.serviceWorker.getRegistration()
  return (await registration?.pushManager.getSubscription()) ?? undefined
}

const nameOf = ({ endpoint }) => {
  const { host, pathname } = new URL(endpoint)
  return pathname.startsWith("/v1/demo/push/") ? "A made-up browser" : `A browser at ${host}`
}

/** Sends one push to a browser, and says what became of it. */
export const sendTo = async (id, say) => {
  const { outcome, said } = await test(id, say)
  const isGone = outcome === "gone" && (await isRemoved(id))
  // Else the page goes on to say that this browser gets pushes: the client looks once a day.
  const isBack = isGone && id === ownId && (await push.check()) === "on"
  await showDevices()
  const removed = isGone ? " The service removed it." : ""
  return said + removed + (isBack ? " The client has subscribed this browser anew." : "")
}

/** Sends one push to this browser, whose subscription may be newer than the list on the page. */
export const sendToThisBrowser = async (say) => {
  await showDevices()
  if (ownId === undefined) throw new Error("The service does not know this browser.")
  return sendTo(ownId, say)
}

const row = (device, isOwn) => {
  const { id, last_modified } = device
  const name = isOwn ? "This browser" : nameOf(device)
  const since = new Date(last_modified).toLocaleString()
  return make(
    "li",
    { className: "row" },
    make("span", {}, name, make("small", {}, ` since ${since}`)),
    button("Send a push", `Send a push to ${name.toLowerCase()}`, at("tested"), (say) =>
      sendTo(id, say)
    ),
    button("Remove", `Remove ${name.toLowerCase()}`, at("tested"), async () => {
      // The client would not notice for a day that its subscription is gone from the service.
      if (isOwn) {
        await push.disable()
        if (push.error) throw push.error
      } else await ask("DELETE", `subscriptions/${id}`)
      await showDevices()
      return "The service forgot it."
    })
  )
}

export const startDevices = (client) => {
  push = client
}

export const showDevices = async () => {
  if (user === null) return
  const { data: all } = await ask("GET", "subscriptions")
  const endpoint = (await subscription())?.endpoint
  const own = all.find((device) => device.endpoint === endpoint)
  ownId = own?.id ?? ownId
  const rows = all.map((device) => row(device, device === own))
  fill(at("devices"), rows, "None: no browser of yours gets pushes.")
}
