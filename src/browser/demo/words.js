// The sentences of the demo that sites do not need.

/** The meaning of `off` where nobody is signed in. */
export const nobody = "No pushes come here: they belong to users."

/**
 * The breaks by their names: a title, and the consequence.
 * @returns {{ [name: string]: [title: string, text: string] }}
 */
export const breaks = (other) => ({
  unsubscribe: [
    "Unsubscribe behind the server’s back",
    "As a browser does that clears its data. Nobody is told: the next push is answered 410 by " +
      "the push service, and the service forgets the subscription. This page then asks the " +
      "client to check, which subscribes anew; at the next load it would do so by itself."
  ],
  key: [
    "Subscribe with another VAPID key",
    "As another push service would. When the page is loaded again, the client finds a key that " +
      "is not the service’s, and takes a new subscription in its place."
  ],
  worker: [
    "Remove the worker",
    "The subscription goes with it. When the page is loaded again, both come back. A worker that " +
      "is only stopped (browsers do that after seconds without work; you can in " +
      "about:debugging or chrome://serviceworker-internals) starts with the next push."
  ],
  user: [
    `Let ${other} log in, without a logout`,
    "The client unsubscribes first: no push of the first user is shown to the second. When the " +
      "first one is back, pushes come again without a press."
  ],
  permission: [
    "Take the permission",
    "A page cannot. You can: press the icon beside the address, and block notifications " +
      "(denied), or remove the permission (lost). The state above follows at once."
  ],
  gone: [
    "Send to a browser that is gone",
    "A made-up browser, whose push service answers 410. The service removes it."
  ],
  throttled: [
    "Send where there are too many pushes",
    "A made-up browser, whose push service answers 429 for eight seconds. The service sends " +
      "again after that."
  ]
})
