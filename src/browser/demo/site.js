// What a site has beside the client: a user who is signed in, and requests of its own.

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
 * Asks the service, as the server of a site would.
 * @param {string} method @param {string} path @param {object} [body]
 */
export const ask = async (method, path, body) => {
  const response = await fetch(path.startsWith("http") ? path : `../${path}`, {
    method,
    headers: { authorization: token(), "content-type": "application/json" },
    body: body ? JSON.stringify(body) : null
  })
  const answer = await response.json().catch(() => ({}))
  if (response.ok) return answer
  throw new Error(`${response.status} ${answer.message ?? answer.error ?? ""}`)
}

/** The notification that a publisher sends; a click on it leads back to this page. */
export const push = (title, body) => ({
  data: { web_push: 8030, notification: { title, body, navigate: location.href } }
})
