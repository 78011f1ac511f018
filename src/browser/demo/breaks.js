// Buttons that break things, with sentences about what happens then.
import { sendTo, showDevices, subscription } from "./devices.js"
import { at, button, fill, make } from "./elements.js"
import { ask, signIn, user } from "./site.js"
import { breaks } from "./words.js"

const other = user === "bob" ? "alice" : "bob"

const base64url = (bytes) =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "")

/** A new public key, as a browser and a VAPID pair have them. */
const publicKey = async () => {
  const algorithm = { name: "ECDH", namedCurve: "P-256" }
  const { publicKey } = await crypto.subtle.generateKey(algorithm, false, ["deriveBits"])
  return new Uint8Array(await crypto.subtle.exportKey("raw", publicKey))
}

const unsubscribe = async () => {
  const found = await subscription()
  if (found === undefined) throw new Error("This browser is not subscribed: press “Notify me”.")
  await found.unsubscribe()
}

const registration = async () => {
  const found = await navigator.serviceWorker.getRegistration()
  if (found === undefined) throw new Error("There is no worker: load the page again.")
  return found
}

/** A subscription whose endpoint the service plays itself: what it answers stands in the path. */
const madeUp = async (answer) => {
  const { data: key } = await ask("GET", "vapid-public-key")
  const { data } = await ask("POST", "subscriptions", {
    data: {
      endpoint: `${location.origin}/v1/demo/push/${answer}/${crypto.randomUUID()}`,
      keys: {
        p256dh: base64url(await publicKey()),
        auth: base64url(crypto.getRandomValues(new Uint8Array(16)))
      },
      ...key
    }
  })
  await showDevices()
  return data.id
}

/** The made-up push service answers 429 for so long. */
const throttledMillis = 8_000

const tasks = {
  unsubscribe: async () => {
    await unsubscribe()
    return "Unsubscribed. Now press “Send a push” above."
  },
  key: async () => {
    const { pushManager } = await registration()
    await unsubscribe()
    const applicationServerKey = await publicKey()
    await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey })
    return "Subscribed with another key. Now load the page again."
  },
  worker: async () => {
    await (await registration()).unregister()
    return "The worker is gone. Now load the page again."
  },
  user: async () => signIn(other),
  gone: async (say) => sendTo(await madeUp("410"), say),
  throttled: async (say) => {
    const id = await madeUp(String(Date.now() + throttledMillis))
    const said = await sendTo(id, say)
    await ask("DELETE", `subscriptions/${id}`)
    await showDevices()
    return said
  }
}

export const startBreaks = () => {
  const rows = Object.entries(breaks(other)).map(([name, [title, text]]) => {
    const task = tasks[name]
    const output = make("output")
    const head = task ? button(title, null, output, task) : make("b", {}, title)
    return make("li", { id: `break-${name}` }, head, make("p", {}, text), output)
  })
  fill(at("breaks"), rows, "")
  at("reload").addEventListener("click", () => location.reload())
}
