// The site beside the client: a user who is signed in, and requests of its own server.
import { wait } from "./elements.js"
import { add, change, fetchQuietly } from "./underneath.js"

const place = "bellcast-demo-user"

/** The user who is signed in at this small site; null: nobody. */
export const user = (localStorage.getItem(place) ?? "alice") || null

/** A login of the site, or its end. As on other sites, another page is loaded. */
export const signIn = (name) => {
  localStorage.setItem(place, name ?? "")
  location.reload()
}

/** With `make run`, any password makes a user. */
export const token = () => `Basic ${btoa(`${user}:demo`)}`

/**
 * The login without cookies, as sites on other ports of this machine may have set some.
 * @returns {RequestInit}
 */
const login = () => ({ headers: { authorization: token() }, credentials: "omit" })

/**
 * Asks the service, as the server of a site would.
 * @param {string} method @param {string} path @param {object} [body]
 */
export const ask = async (method, path, body) => {
  const response = await fetch(`../${path}`, {
    ...login(),
    method,
    headers: { authorization: token(), "content-type": "application/json" },
    body: body ? JSON.stringify(body) : null
  })
  const answer = await response.json().catch(() => ({}))
  if (!response.ok) throw new Error(`${response.status} ${answer.message ?? answer.error ?? ""}`)
  return { ...answer, location: response.headers.get("location") }
}

/** The notification that a publisher sends; a click on it leads back to this page. */
export const pushOf = (title, body) => {
  const notification = { title, body, navigate: new URL(".", location.href).href }
  return { data: { web_push: 8030, notification } }
}

const outcomes = ["delivered", "gone", "dead", "expired", "cancelled", "retrying", "waiting"]

const countsOf = (data) => {
  const counts = outcomes.flatMap((outcome) =>
    data[outcome] > 0 ? [`${data[outcome]} ${outcome}`] : []
  )
  return `Broadcast ${data.id}: ${counts.join(", ") || "nobody to send it to"}.`
}

/** The events of a broadcast, for a minute. EventSource could not send the login. */
const eventsOf = async function* (url) {
  const signal = AbortSignal.timeout(60_000)
  const { body } = await fetchQuietly(`${url}/events`, { ...login(), signal })
  if (body === null) return
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ""
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const events = (text + part.value).split("\n\n")
    text = events.pop() ?? ""
    for (const event of events) {
      const [, data] = /^data: (.*)$/m.exec(event) ?? []
      if (data) yield JSON.parse(data)
    }
  }
}

/**
 * Follows a broadcast until its last push has an outcome, for a minute. Says its counts as they
 * change, as a push to a browser that is gone for good may be tried again for hours; returns them.
 * @param {string} url @param {(text: string) => void} say
 */
export const follow = async (url, say) => {
  const row = add("outcome", "Broadcast: waiting")
  try {
    for await (const data of eventsOf(url)) {
      if (data.shards === 0 && !data.finished) continue
      const audit = `Push by push: make audit BROADCAST=${data.id}`
      change(row, {
        text: countsOf(data),
        details: `${JSON.stringify(data, null, 2)}\n\n${audit}`
      })
      say(row.text)
    }
  } catch (error) {
    console.debug(error)
  }
  return row.text
}

/**
 * Sends one push to a browser of the user. Returns its outcome, and what became of it in words;
 * says so far what is known of it.
 * @param {string} id @param {(text: string) => void} say
 */
export const test = async (id, say) => {
  const body = pushOf("Hello", "from you")
  const { data, location: url } = await ask("POST", `subscriptions/${id}/test`, body)
  if (data === undefined) return { said: await follow(url, say) }
  const { outcome, reason, status } = data
  const answer = status === undefined ? reason : `its push service answered ${status}`
  const said = `The push is ${outcome}: ${answer}.`
  add("outcome", said)
  if (outcome !== "retrying") return { outcome, said }
  say(`${said} Later once more ...`)
  return { outcome, said: `${said} ${await follow(url, (text) => say(`${said} ${text}`))}` }
}

/** Waits until the service has removed a subscription, 5 s at most. */
export const isRemoved = async (id) => {
  for (const end = Date.now() + 5_000; Date.now() < end; await wait(100)) {
    const { status } = await fetchQuietly(`../subscriptions/${id}`, login())
    if (status === 404) return true
  }
  return false
}
