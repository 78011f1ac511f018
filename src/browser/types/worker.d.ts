// Bellcast's types of worker.js, for a worker of the site that imports it.
/** Options that a site sets on its worker, as `self.bellcast`, in the worker's first run. */
interface BellcastWorker {
  /** Title of a push that has none. Default: the host of the site. */
  name?: string
  /**
   * Opened by a click on a notification without an address, if no page of the site is open.
   * Relative to the scope of the service worker. Default: `/`, as a scope may have no page.
   */
  home?: string
  /**
   * Whether a click, where no page shows its address, leads a page of the site that is open there,
   * in place of opening another one. What the user typed in that page is lost. Default: false.
   */
  reuse?: boolean
  /**
   * Changes what is shown: resolves with other content, or with undefined to leave it. The original
   * is shown if the hook takes longer than 3 s, fails, or resolves with content without a title.
   */
  onpush?: (content: BellcastContent, event: PushEvent) => unknown
  /**
   * Gives false to open nothing, a URL to open that one instead, or undefined. After 0.5 s, and
   * after an error, the URL of the notification is opened: Firefox lets a worker open a page only
   * for a second after a click. What takes longer goes into `event.waitUntil`.
   */
  onclick?: (clicked: BellcastClicked, event: NotificationEvent) => unknown
}

/**
 * A notification as it was published: the members of `notification` of a declarative push, or those
 * of a plain one. All options of `showNotification` are passed on.
 */
interface BellcastContent extends NotificationOptions {
  /** Before `onpush`, the name of the site if the push has none. */
  title?: string
  /** Opened by a click; relative to the scope of the service worker. */
  navigate?: string
  /** `navigate` of a plain push. */
  url?: string
  actions?: Array<{
    action: string
    title: string
    icon?: string
    navigate?: string
    url?: string
  }>
  /** Number on the icon of an installed site; 0 removes it. */
  app_badge?: number | string
  [member: string]: unknown
}

interface BellcastClicked {
  /** The action of the button; "" for the notification itself. */
  action: string
  /** The address that will be opened; undefined: any window of the site, or `home`. */
  url: string | undefined
  /** `data` of the notification as it was published. */
  data: unknown
}

interface ServiceWorkerGlobalScope {
  bellcast?: BellcastWorker
}
