// The sentences of the demo about the states and errors of client.js.

/** The meaning of each state for the person who looks, and the next step. */
export const states = {
  unsupported:
    "No Web Push here: a private window, an old browser, or a page that is neither https nor on " +
    "this machine.",
  "install-first": "Put this page on the home screen, and open it from there.",
  denied:
    "Notifications are blocked for this page. Only you can change that: press the icon beside " +
    "the address of the page, and take the block away.",
  off: "No pushes come here yet: press the button.",
  lost: "Pushes are wanted, but the browser took the permission back. Press the button again.",
  on: "The service has the subscription of this browser."
}

/** The meaning of `off` where nobody is signed in. */
export const nobody = "No pushes come here: they belong to users."

/** The meaning of each error code. */
export const errors = {
  "no-click": "The browser asks only after a click.",
  dismissed: "You closed the question. Press the button again.",
  "push-service":
    "The browser could not subscribe at its push service. Is the network there? In Brave, switch " +
    "on “Use Google services for push messaging”.",
  worker: "The service worker did not start.",
  offline: "The service does not respond. Does make run still run?",
  login: "The service refuses the login.",
  forbidden: "The channel is closed to this user.",
  limit: "A limit of the service is reached.",
  service: "The service has an error; its log says more.",
  user: "Nobody is signed in, or another tab has another user: load the page again.",
  browser: "Something failed in the browser; its console says more."
}

/**
 * The breaks by their names: a title, and the consequence.
 * @returns {{ [name: string]: [title: string, text: string] }}
 */
export const breaks = (other) => ({
  unsubscribe: [
    "Unsubscribe behind the server’s back",
    "As a browser does that clears its data. Nobody is told: the next push is answered 410 by " +
      "the push service, and the service forgets the subscription. When the page is loaded " +
      "again, the client subscribes anew."
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
