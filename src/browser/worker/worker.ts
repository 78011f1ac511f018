// worker.js, the service worker of a site, alone or as a part of one that is there: it shows
// pushes, opens pages at clicks and renews a lost subscription. A plain script: it has no exports,
// and a site sets `self.bellcast` before it loads it (../types/worker.d.ts).
//
// All listeners are added in the first run, as browsers demand.
import { wait } from "../device/time.ts"
import { openClicked, showPush } from "./notifications.ts"
import { renewAlone } from "./renewal.ts"

declare const self: ServiceWorkerGlobalScope

/** After a renewal that failed, such as while the network changes. */
const renewAgainMillis = 5000

self.addEventListener("push", (event) => event.waitUntil(showPush(event)))

self.addEventListener("notificationclick", (event) => {
  // Others are the site's own.
  if (event.notification.data?.bellcast) event.waitUntil(openClicked(event))
})

self.addEventListener("pushsubscriptionchange", (event) =>
  event.waitUntil(renewAlone().catch(() => wait(renewAgainMillis).then(renewAlone)))
)
