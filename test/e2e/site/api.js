// Shared by the page and the worker: requests to the API as the user in the query string, and
// subscribing.
const query = new URLSearchParams(self.location.search)
const authorization = `Basic ${btoa(`${query.get("user")}:secret`)}`

/**
 * A cross-origin request with credentials: the browser sends a preflight first. A page of another
 * site has to declare JSON for whatever it changes, also without a body.
 */
const call = async (method, path, body) => {
  const headers = { authorization, "content-type": "application/json" }
  const response = await fetch(query.get("api") + path, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })
  return { status: response.status, body: await response.json() }
}

const base64url = (bytes) =>
  btoa(String.fromCharCode(...new Uint8Array(bytes)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "")

/** The subscription that the browser has, or a new one, made known to our API. */
const subscribe = async (registration) => {
  const { body: root } = await call("GET", "/")
  const applicationServerKey = root.capabilities.webpush.vapid_public_key
  const existing = await registration.pushManager.getSubscription()
  const subscription =
    existing ??
    (await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey }))
  const { status } = await call("POST", "/subscriptions", {
    data: {
      ...subscription.toJSON(),
      vapid_public_key: base64url(subscription.options.applicationServerKey)
    }
  })
  return { status, endpoint: subscription.endpoint }
}

self.api = { call, subscribe }
