// Notifications: the one that a push shows, and the page that a click on it opens. The tables of
// ../README.md, "worker.js", say what sites may rely on.
import { atMost, wait } from "../device/time.ts"

declare const self: ServiceWorkerGlobalScope

/** Time of `onpush`. The notification waits for it. */
const pushHookMillis = 3000
/** Chromium on macOS may not show a notification whose worker ends too soon. */
const macMillis = 1000
/** Time of `onclick`: Firefox lets a worker open a page only for a second after a click. */
const clickHookMillis = 500
/** Time in which a page says what it shows. */
const pageMillis = 250

/**
 * Shows the notification of a push, always, and before any request: browsers end subscriptions
 * whose pushes show nothing, Safari after three.
 */
export const showPush = async (event: PushEvent): Promise<void> => {
  const original = contentOf(event)
  // The hook gets a copy of its own: it may change that and fail after.
  const changed = (await hook("onpush", pushHookMillis, contentOf(event), event)) as
    | BellcastContent
    | undefined
  const content = changed && isTitle(changed.title) ? changed : original
  const { body, navigate, title, url } = original
  // Options that this browser refuses must not cost the text, nor what a click opens.
  await show(content)
    .catch(() => show(original))
    .catch(() => show({ title, body, navigate, url } as BellcastContent))
  await setBadge(content.app_badge)
  if (/Mac.*Chrome/.test(self.navigator.userAgent)) await wait(macMillis)
}

/** A declarative push, a plain one, or none: a push may have no data, or data that is no JSON. */
type Sent = {
  readonly notification?: unknown
  readonly app_badge?: number | string
} | null

/** In Safari the event of a declarative push has a notification, and no data. */
type DeclarativeEvent = PushEvent & {
  readonly notification?: unknown
  readonly appBadge?: number
}

const contentOf = (event: DeclarativeEvent): BellcastContent => {
  let sent: Sent | undefined
  try {
    sent = event.data
      ? (event.data.json() as Sent)
      : { notification: event.notification, app_badge: event.appBadge! }
  } catch {
    // The notification then has the site's name.
  }
  const members = [sent?.notification, sent].find((each) => each && typeof each === "object")
  const given: Array<[string, unknown]> = []
  // Not Object.entries of them: members of a Notification are inherited.
  for (const name in members as object) {
    const value = (members as { readonly [name: string]: unknown })[name]
    if (value != null) given.push([name, value])
  }
  const content: BellcastContent = Object.fromEntries(given)
  content.app_badge = (sent?.app_badge ?? content.app_badge)!
  if (!isTitle(content.title)) content.title = self.bellcast?.name ?? self.location.host
  return content
}

const isTitle = (title: unknown): boolean => typeof title === "string" && title !== ""

/** Keeps beside the notification what a click needs; `data` of the site stays as it was sent. */
const show = async ({ data, navigate, title = "", url, ...options }: BellcastContent) => {
  const target = httpUrl(navigate ?? url)
  const targets = (options.actions ?? []).map((each) => [
    each.action,
    httpUrl(each.navigate ?? each.url)
  ])
  await self.registration.showNotification(title, {
    ...options,
    // Safari opens it without calling the worker, so not where the site has a hook for clicks.
    ...(target && !self.bellcast?.onclick && { navigate: target }),
    data: { bellcast: { target, targets, data } }
  })
}

type Badge = { readonly setAppBadge?: (count: number) => Promise<void> }

const setBadge = async (badge: number | string | undefined): Promise<void> => {
  if (badge == null) return
  const { setAppBadge } = self.navigator as Badge
  await setAppBadge?.call(self.navigator, Number(badge)).catch(console.error)
}

/**
 * A page that shows the address of the notification, or of its button, gets the focus. Else another
 * one is opened, so that nothing is lost that the user typed in an open page.
 */
export const openClicked = async (event: NotificationEvent): Promise<void> => {
  const { action, notification } = event
  notification.close()
  // Notifications outlive workers: a former one may have stored another form, such as an object.
  const { data, target, targets } = Object(notification.data.bellcast)
  const pairs = Array.isArray(targets) ? targets : Object.entries(targets ?? {})
  const addresses = new Map<string, unknown>(
    pairs.filter(Array.isArray) as Array<[string, unknown]>
  )
  const url = httpUrl(addresses.get(action) ?? target)
  // The pages are asked while the hook works.
  const pages = shownPages()
  const answer = await hook("onclick", clickHookMillis, { action, url, data }, event)
  if (answer !== false) await open(httpUrl(answer) ?? url, pages)
}

interface ShownPage {
  readonly page: WindowClient
  /** The address; undefined: the page did not say, as without client.js. */
  readonly shows: string | undefined
}

/** All pages of the site. They are asked, as a worker knows only where each began. */
const shownPages = async (): Promise<ReadonlyArray<ShownPage>> =>
  Promise.all(
    (await windows(true)).map(async (page) => {
      const { port1, port2 } = new MessageChannel()
      const told = new Promise<string>((resolve) => {
        port1.onmessage = ({ data }) => resolve(data)
      })
      page.postMessage({ bellcast: "address" }, [port2])
      return { page, shows: await atMost(pageMillis, told) }
    })
  )

/** Pages, without those in frames. */
const windows = async (includeUncontrolled: boolean): Promise<ReadonlyArray<WindowClient>> =>
  (await self.clients.matchAll({ type: "window", includeUncontrolled })).filter(
    ({ frameType }) => frameType !== "nested"
  )

/** Without an address any page will do. */
const open = async (
  url: string | undefined,
  pages: Promise<ReadonlyArray<ShownPage>>
): Promise<void> => {
  try {
    const there = (await pages).find(({ shows }) => !url || shows === url)
    if (there) return void (await there.page.focus())
    const [controlled] = self.bellcast?.reuse ? await windows(false) : []
    if (url && controlled && new URL(url).origin === self.location.origin) {
      // Before the page loads: the click allows the focus for a second only.
      await controlled.focus()
      return void (await controlled.navigate(url))
    }
  } catch {
    // A page that was closed meanwhile, or a browser that refuses: a new page it is.
  }
  await self.clients.openWindow(url ?? httpUrl(self.bellcast?.home ?? "/") ?? "/")
}

type Hooks = Required<Pick<BellcastWorker, "onpush" | "onclick">>

/** The answer of a hook of the site; undefined: there is none, it failed, or took longer. */
const hook = async <Name extends keyof Hooks>(
  name: Name,
  millis: number,
  ...given: Parameters<Hooks[Name]>
): Promise<unknown> => {
  const run = self.bellcast?.[name] as ((...all: typeof given) => unknown) | undefined
  if (!run) return undefined
  // With `bellcast` as `this`, and a promise also of one that throws.
  const answer = (async () => run.apply(self.bellcast, given))()
  return atMost(millis, answer).catch(console.error)
}

/** An address, relative to the scope; undefined: none that a worker may open. */
const httpUrl = (address: unknown): string | undefined => {
  try {
    const { href, protocol } = new URL(address as string, self.registration.scope)
    return address && /^https?:$/.test(protocol) ? href : undefined
  } catch {
    return undefined
  }
}
