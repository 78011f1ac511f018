// The demo: a page that connects as any site does, and buttons for what users and publishers do.
import { connect } from "../client.js"
import { ask, push as pushOf, signIn, token, user } from "./site.js"
import { errors, states } from "./words.js"

/** @param {string} id @returns {any} */
const at = (id) => document.getElementById(id)

/** Runs a task at each click, one at a time, and says what came of it. */
const onPress = (id, place, task) => {
  let isBusy = false
  at(id).addEventListener("click", async () => {
    if (isBusy) return
    isBusy = true
    at(place).textContent = (await task().catch(({ message }) => `Failed: ${message}`)) ?? ""
    isBusy = false
  })
}

// The page's policy has Trusted Types where the browser has them.
const { trustedTypes } = /** @type {any} */ (window)
const policy = { createScriptURL: () => "worker.js" }
const worker = trustedTypes?.createPolicy("demo", policy).createScriptURL("") ?? "worker.js"

const push = await connect({ url: "..", worker, user, token })

const show = () => {
  const { error, state } = push
  const [bold, text] = [document.createElement("b"), error ? errors[error.code] : states[state]]
  bold.textContent = state
  at("state").replaceChildren(bold, ` ${text}`)
  at("state").dataset.state = state
  at("enable").hidden = !["off", "lost"].includes(state) || user === null
  at("send").hidden = state !== "on"
  at("disable").hidden = state !== "on"
}
push.addEventListener("change", show)
show()

at("user").textContent = user === null ? "Nobody is signed in." : `Signed in as ${user}.`
at("log-out").hidden = user === null
for (const name of ["alice", "bob"]) {
  at(`log-in-${name}`).hidden = user !== null
  at(`log-in-${name}`).addEventListener("click", () => signIn(name))
}
at("log-out").addEventListener("click", async () => {
  await push.signOut()
  signIn(null)
})

at("enable").addEventListener("click", () => push.enable({ channels: ["news"] }))
at("disable").addEventListener("click", () => push.disable())

/** The push service's answer to one push. */
const sent = ({ fate, reason, status }) =>
  `The push is ${fate}: ${status === undefined ? reason : `its push service answered ${status}`}.`

onPress("send", "sent", async () => {
  const registration = await navigator.serviceWorker.getRegistration()
  const here = await registration?.pushManager.getSubscription()
  const { data: all } = await ask("GET", "subscriptions")
  const own = all.find(({ endpoint }) => endpoint === here?.endpoint)
  if (own === undefined) throw new Error("the service does not have this browser")
  const { data } = await ask("POST", `subscriptions/${own.id}/test`, pushOf("Hello", "from you"))
  return data === undefined ? "The push service has not answered yet." : sent(data)
})
