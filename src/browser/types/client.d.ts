// Bellcast's types of client.js.
/**
 * - `unsupported`: this browser has no Web Push, or not here (http).
 * - `install-first`: iOS and iPadOS, where only a site on the home screen has it, from 16.4 on.
 * - `denied`: the user refused notifications, which the settings of the browser alone can change;
 *   or the browser refuses them without asking, as Chromium in a private window.
 * - `off`: no pushes here: not wanted, nobody is signed in, or not possible yet (see `error`).
 * - `lost`: wanted, but the browser took the permission back: only a click on `enable` asks again.
 * - `on`: the service has the subscription of this browser.
 */
export type PushState = "unsupported" | "install-first" | "denied" | "off" | "lost" | "on"

/**
 * - `no-click`: `enable` was not called by a click, so the browser did not ask.
 * - `dismissed`: the user closed the question.
 * - `push-service`: the browser's push service does not subscribe, or not within 10 s (a switch of
 *   Brave, a blocked network).
 * - `worker`: the service worker could not be registered, or was not active after 10 s in all. A
 *   subscription by an earlier worker stays while it is wanted, and ends otherwise.
 * - `offline`: the service does not respond, or not now (502, 503, 504), or `token` finds no
 *   network: it rejects with a TypeError, as `fetch` does, or takes more than 10 s.
 * - `token`: the page's `token` failed otherwise; see `cause`.
 * - `login`: the session has ended (`token` gave null or a text that is no token), or the service
 *   refuses the token, and the next one that `token` gives.
 * - `forbidden`: a closed channel. `limit`: a quota of the service. `service`: its other errors.
 * - `user`: nobody is signed in, the user has just signed out in another page, or a newer page of
 *   the site has another user.
 * - `browser`: the browser failed otherwise, such as with its storage; see `cause`.
 */
export type PushErrorCode =
  | "no-click"
  | "dismissed"
  | "push-service"
  | "worker"
  | "offline"
  | "token"
  | "login"
  | "forbidden"
  | "limit"
  | "service"
  | "user"
  | "browser"

export interface PushError extends Error {
  readonly code: PushErrorCode
  /**
   * Trying again may help. The client tries once more by itself, then at the next `online`; what
   * needs a click (`no-click`, `dismissed`) it leaves to the next one.
   */
  readonly retryable: boolean
}

export interface ConnectOptions {
  /** Address of the service, maybe relative: `https://push.example.org/v1`, `/v1`. */
  readonly url: string
  /** URL of the service worker, given to `register` unchanged: a TrustedScriptURL, too. */
  readonly worker?: string | URL | { toString(): string }
  /** Instead of `worker`: the registration of a worker that the site has already. */
  readonly registration?: ServiceWorkerRegistration | Promise<ServiceWorkerRegistration>
  /** The site's id of the user who is signed in; null: nobody. */
  readonly user: string | null
  /**
   * A token of that user for the service, asked for when one is needed and anew after a 401; null
   * where the session has ended. A text with a blank, such as `Basic ...`, is a whole
   * `Authorization`. With it, requests carry no cookies. Without it: no `Authorization`, and the
   * cookies of the page's origin, for a proxy in front that knows its users by them.
   */
  readonly token?: () => string | null | Promise<string | null>
  /**
   * For a site that imported the subscriptions of another service: a device that has one gets
   * pushes from its first load on, without a click, and `user` the subscription. Default: false.
   */
  readonly adopt?: boolean
}

/** Dispatches `change` when `state`, `error` or `busy` changed. */
export interface Push extends EventTarget {
  readonly state: PushState
  /** The error of the last attempt to make device and service agree; null: they agree. */
  readonly error: PushError | null
  /**
   * Whether `enable`, `disable`, `signOut` or `check` is working; not while the browser asks the
   * user, and not at a load.
   */
  readonly busy: boolean
  /**
   * Call it first in the listener of a click. Asks for permission, subscribes, and joins the
   * channels. Resolves with the state; what failed is `error`. Goes on, too, when the browser's
   * question stays open and the permission is granted elsewhere.
   */
  enable(options?: { readonly channels?: ReadonlyArray<string> }): Promise<PushState>
  /**
   * The user wants no pushes on this device. Works offline, unless nothing was recorded here yet
   * and there is a subscription: only the service knows whether it belongs to this user.
   */
  disable(): Promise<PushState>
  /**
   * Checks everything at the service now, as a load does once a day: for a page that knows of a
   * change, such as a push to this browser that is `gone`. Resolves with the state.
   */
  check(): Promise<PushState>
  /**
   * Logout: this browser belongs to nobody. Works offline, without a token, and without the script
   * of the worker. Closes shown pushes where the worker is registered. Waits at most 10 s for the
   * script, 10 s for each answer of the browser, 20 s for a renewal by the worker, and 1 s for the
   * service. Where nothing was recorded here, a subscription by an earlier page ends only if the
   * service responds, within 10 s. Other pages of the site abort what they wait for, unless they
   * sign out too.
   */
  signOut(): Promise<PushState>
  /** Registers the user, on all devices, to a channel. Rejects with a `PushError`. */
  join(channel: string): Promise<void>
  /** Rejects with a `PushError`. */
  leave(channel: string): Promise<void>
  /** The user's channels. Rejects with a `PushError`. */
  channels(): Promise<Array<string>>
}

/**
 * Makes the device and the service agree, and resolves with the state, after 11 s at most. Never
 * asks the user, never rejects for want of a network. Throws TypeError without a usable `url`. In
 * one page, the last call counts: what earlier ones gave no longer follows events.
 */
export function connect(options: ConnectOptions): Promise<Push>
