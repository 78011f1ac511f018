// News for a page: from other pages of the site, from the browser, and from the worker. One
// connection at a time listens: the last one of the page.

/** Sent to the other pages, also to those that have a client of an older version. */
export interface News {
  /** Device and service were made to agree, for `user`; undefined: a logout begins. */
  readonly isDone?: boolean
  readonly user?: string | null
}

let pages: BroadcastChannel | undefined

/** Calls `hear` from now on, and nobody else. */
export const hearPages = (hear: (news: News) => void): void => {
  try {
    pages ??= new BroadcastChannel("bellcast")
    pages.onmessage = ({ data }) => hear(data)
  } catch {
    // A page without storage, as in a sandbox, is alone.
  }
}

export const tellPages = (news: News): void => pages?.postMessage(news)

/** Calls `again` when the network is back, and when the page comes back from the cache. */
export const onReturn = (again: () => void, signal: AbortSignal): void => {
  addEventListener("online", again, { signal })
  addEventListener("pageshow", ({ persisted }) => persisted && again(), { signal })
}

const lookMillis = 10_000

/**
 * Calls `look` every 10 s, for as long as there is the page, and when the user looks at it. Not
 * one timer for a day: it would be late by the time that the computer slept.
 */
export const whileVisible = (look: () => void): void => {
  const lookIfVisible = () => {
    if (!document.hidden) look()
  }
  document.addEventListener("visibilitychange", lookIfVisible)
  setInterval(lookIfVisible, lookMillis)
}

/** The permission, which calls `changed`, or undefined where the browser cannot say. */
export const watchPermission = async (
  changed: () => void,
  signal: AbortSignal
): Promise<PermissionStatus | undefined> => {
  const { permissions } = navigator as Partial<Navigator>
  const status = await permissions?.query({ name: "notifications" }).catch(console.debug)
  status?.addEventListener("change", changed, { signal })
  return status ?? undefined
}

// A worker that is about to open a page asks what each one shows: it knows only where each began.
// Not in a function, as pages may connect late; `navigator` is missing where a server renders.
globalThis.navigator?.serviceWorker?.addEventListener("message", ({ data, ports }) => {
  if (data?.bellcast === "address") ports[0]?.postMessage(location.href)
})
