// The demo: a page that connects as any site does, with buttons for what users and publishers do.
import { connect } from "../client.js"
import { sentenceOf } from "../words.js"
import { startBreaks } from "./breaks.js"
import { showChannels, startChannels } from "./channels.js"
import { sendToThisBrowser, showDevices, startDevices } from "./devices.js"
import { at, run } from "./elements.js"
import { signIn, token, user } from "./site.js"
import { add } from "./underneath.js"
import { nobody } from "./words.js"

// The page's policy has Trusted Types where the browser has them.
const { trustedTypes } = Object(window)
const policy = { createScriptURL: () => "worker.js" }
/** @type {{ toString(): string }} A TrustedScriptURL, or a text. */
const worker = trustedTypes?.createPolicy("demo", policy).createScriptURL("") ?? "worker.js"

const push = await connect({ url: "..", worker, user, token })

/** The part of the client that the page shows. */
let shown = ""

const show = async () => {
  const { busy, error, state } = push
  at("state").textContent = at("state").className = state
  const isNobody = user === null && state === "off" && !busy && !error
  at("state-text").textContent = isNobody ? nobody : sentenceOf(push)
  for (const name of ["enable", "disable"]) at(name).ariaDisabled = String(busy)
  const now = `state: ${state}${error ? `, error: ${error.code}` : ""}`
  if (now === shown) return
  shown = now
  add("client", now)
  const { activeElement } = document
  at("enable").hidden = !["off", "lost"].includes(state) || user === null
  at("send").hidden = state !== "on"
  at("disable").hidden = state !== "on"
  // A button that vanishes must not take the focus along.
  if (activeElement === at("enable") && state === "on") at("send").focus()
  if (activeElement === at("disable") && state === "off") at("enable").focus()
  if (user !== null) await Promise.all([showChannels(push), showDevices()]).catch(console.debug)
}

at("user").textContent = user === null ? "Nobody is signed in." : `You are ${user}.`
at("log-out").hidden = user === null
for (const name of ["alice", "bob"]) {
  at(`log-in-${name}`).hidden = user !== null
  at(`log-in-${name}`).addEventListener("click", () => signIn(name))
}
for (const section of document.querySelectorAll(".for-users"))
  section.toggleAttribute("hidden", user === null)
at("log-out").addEventListener("click", async () => {
  await push.signOut()
  signIn(null)
})
const onPress = (name, task) => at(name).addEventListener("click", () => push.busy || task())
onPress("enable", () => push.enable({ channels: ["news"] }))
onPress("disable", () => push.disable())
at("send").addEventListener("click", () => run(at("sent"), sendToThisBrowser))
startDevices(push)
startChannels(push)
startBreaks()
push.addEventListener("change", show)
await show()
