// The sentences of the demo about the states and errors of client.js.

/** What each state means for the person who looks, and what to do. */
export const states = {
  unsupported:
    "No Web Push here: a private window, an old browser, or a page that is neither https nor on " +
    "this machine.",
  "install-first": "Put this page on the home screen, and open it from there.",
  denied:
    "Notifications are blocked for this page. Only you can change that: press the icon beside the " +
    "address of the page, and take the block away.",
  off: "No pushes come here.",
  lost: "Pushes are wanted, but the browser took the permission back. Press the button again.",
  on: "The service has the subscription of this browser."
}

/** What each error code means. */
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
  user: "Nobody is signed in.",
  browser: "Something failed in the browser; its console says more."
}
