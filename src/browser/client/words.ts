// words.js: English sentences for the people who look at a page, about the states and errors of
// client.js. Its types for sites: types/words.d.ts.
import type * as Types from "../types/words.d.ts"

export const states: typeof Types.states = {
  unsupported: "This browser has no notifications for this site.",
  "install-first": "For notifications, add this site to your home screen and open it there.",
  denied:
    "Notifications are blocked here: by you, which the icon beside the address of the page can " +
    "change, or by the browser, as in a private window.",
  off: "No notifications come to this browser.",
  lost: "The browser has switched notifications off. Press the button again.",
  on: "Notifications come to this browser."
}

export const errors: typeof Types.errors = {
  "no-click": "The browser asks only after a click.",
  dismissed: "You closed the question. Press the button again.",
  "push-service":
    "The browser cannot reach its push service. Is the network there? In Brave, switch on “Use " +
    "Google services for push messaging”.",
  worker: "A part of this site did not load: its service worker. Load the page again.",
  offline: "The notification service does not respond. Is the network there?",
  token: "This site could not say who you are. Try again later.",
  login: "You are not logged in any more, or this site's login is refused. Log in again.",
  forbidden: "The channel is closed to you.",
  limit: "A limit is reached, of requests or of browsers. Try again later.",
  service: "The notification service has an error. Try again later.",
  user: "Nobody is logged in, or another tab has another user. Load the page again.",
  browser: "Something failed in the browser. Load the page again."
}

export const sentenceOf: typeof Types.sentenceOf = ({ busy, error, state }) => {
  if (busy) return "One moment ..."
  return error ? (errors[error.code] ?? error.message) : states[state]
}
