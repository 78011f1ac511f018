// Pushes to a service worker in Chromium, which has no push service of its own: the protocol of its
// developer tools hands a push to the real worker.
import type { CDPEvents, CDPSession, Page } from "puppeteer-core"

/** The next event of which `read` finds something. */
const next = <Name extends keyof CDPEvents, A>(
  session: CDPSession,
  name: Name,
  read: (event: CDPEvents[Name]) => A | undefined
) =>
  new Promise<A>((resolve) => {
    const take = (event: CDPEvents[Name]) => {
      const found = read(event)
      if (found === undefined) return
      session.off(name, take)
      resolve(found)
    }
    session.on(name, take)
  })

/**
 * Delivers a push to the worker whose scope is `scope`, "" without data; resolves when its
 * `waitUntil` has ended, with the result that Chromium recorded ("Success").
 */
export const deliverPush = async (page: Page, scope: string, data: string): Promise<string> => {
  const session = await page.createCDPSession()
  const registered = next(session, "ServiceWorker.workerRegistrationUpdated", ({ registrations }) =>
    registrations.find(({ scopeURL, isDeleted }) => scopeURL === scope && !isDeleted)
  )
  await session.send("ServiceWorker.enable")
  const { registrationId } = await registered
  const service = "pushMessaging"
  await session.send("BackgroundService.setRecording", { shouldRecord: true, service })
  await session.send("BackgroundService.clearEvents", { service })
  const completed = next(
    session,
    "BackgroundService.backgroundServiceEventReceived",
    ({ backgroundServiceEvent: event }) =>
      event.eventName === "Push event completed" ? event : undefined
  )
  await session.send("BackgroundService.startObserving", { service })
  const { origin } = new URL(scope)
  await session.send("ServiceWorker.deliverPushMessage", { origin, registrationId, data })
  const { eventMetadata } = await completed
  await session.detach()
  return eventMetadata.map(({ value }) => value).join(" ")
}
