// The list of what happens underneath: requests and their answers, states, pushes, outcomes. It
// outlives a reload. Long texts in it are cut, as they are keys, tokens and endpoints.
import { at, make } from "./elements.js"

const place = "bellcast-demo-underneath"
const rowsMax = 100
/** All rows must fit into the storage of a session, which is 5 MB in some browsers. */
const detailsMax = 8_000

/** @type {Array<any>} The newest first. */
const rows = JSON.parse(sessionStorage.getItem(place) ?? "[]")
const elements = new Map()

const render = (row) => {
  const { at: time, details, kind, status, text } = row
  const line = [
    make("time", {}, new Date(time).toLocaleTimeString()),
    make("i", { className: kind }, kind),
    make("span", {}, text, ...(status ? [" ", make("b", {}, String(status))] : []))
  ]
  if (!details) return make("li", {}, make("div", {}, ...line))
  return make("li", {}, make("details", {}, make("summary", {}, ...line), make("pre", {}, details)))
}

const save = () => sessionStorage.setItem(place, JSON.stringify(rows))

/** Adds a row at the top; the row is given to `change`. */
export const add = (kind, text, more = {}) => {
  const row = { at: Date.now(), kind, text, ...more }
  rows.unshift(row)
  elements.set(row, render(row))
  at("underneath").prepend(elements.get(row))
  for (const old of rows.splice(rowsMax)) elements.get(old)?.remove()
  save()
  return row
}

export const change = (row, members) => {
  Object.assign(row, members)
  const isOpen = elements.get(row)?.querySelector("details")?.open
  const element = render(row)
  if (isOpen) element.querySelector("details")?.setAttribute("open", "")
  elements.get(row)?.replaceWith(element)
  elements.set(row, element)
  save()
}

/** Keys and secrets have 22 characters or more, and no blanks. */
const cut = (text) => {
  if (text.length < 22 || /\s/.test(text) || text.startsWith(`${location.origin}/`)) return text
  return `${URL.canParse(text) ? `${new URL(text).origin}/` : text.slice(0, 8)}…`
}

const readable = (text) => {
  try {
    const cutIn = (_, value) => (typeof value === "string" ? cut(value) : value)
    return JSON.stringify(JSON.parse(text, cutIn), null, 2).slice(0, detailsMax)
  } catch {
    return text.slice(0, detailsMax)
  }
}

const pathOf = (input) => {
  const { pathname, search } = new URL(input, location.href)
  return (pathname + search).replace(/[0-9a-f]{64}/g, (id) => `${id.slice(0, 8)}…`)
}

/** Requests that are not listed. */
export const fetchQuietly = window.fetch.bind(window)

/** @param {any} input @param {any} init */
window.fetch = async (input, init = {}) => {
  const { body, method = "GET" } = init
  const row = add("request", `${method} ${pathOf(input)}`, { status: "..." })
  try {
    const response = await fetchQuietly(input, init)
    const answer = await response.clone().text()
    const sent = body ? `Sent\n${readable(body)}\n\n` : ""
    change(row, { status: response.status, details: `${sent}Answered\n${readable(answer)}` })
    return response
  } catch (error) {
    change(row, { status: "no answer" })
    throw error
  }
}

// The worker reports what it does.
new BroadcastChannel("bellcast-demo").addEventListener("message", ({ data }) => {
  const { details, kind, text } = data
  add(kind, text, details && { details: readable(details) })
})

for (const row of rows) {
  elements.set(row, render(row))
  at("underneath").append(elements.get(row))
}
at("clear").addEventListener("click", () => {
  rows.length = 0
  at("underneath").replaceChildren()
  save()
})
