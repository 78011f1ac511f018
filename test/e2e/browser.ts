// Finds browsers and starts them without a screen. Firefox may have the push service of a test as
// its own; Chromium subscribes with a part of its maker's (chromium-vendor.ts).
import { spawnSync } from "node:child_process"
import { type Browser, type BrowserContext, launch } from "puppeteer-core"
import type { ChromiumVendor } from "#test/chromium-vendor.ts"

const pathOf = (...names: ReadonlyArray<string>): string | undefined =>
  spawnSync("which", names, { encoding: "utf8" })
    .stdout?.split("\n")
    .find((path) => path !== "")

/** Undefined where there is none. */
export const firefoxPath = pathOf("firefox-esr", "firefox")
export const chromiumPath = pathOf("chromium", "chromium-browser", "google-chrome")

const pushPreferences = (pushServerUrl: string) => ({
  "dom.push.serverURL": pushServerUrl,
  // Else only wss is taken.
  "dom.push.testing.allowInsecureServerURL": true,
  // Its default, but a driven Firefox switches push off unless it is told.
  "dom.push.connection.enabled": true,
  // Reconnect after 200 ms (times 2 each attempt), not after 5 s.
  "dom.push.retryBaseInterval": 200
})

const preferences = {
  // There is no D-Bus to show notifications: Firefox shows them in windows of its own.
  "alerts.useSystemBackend": false,
  // A sandbox without a network is not offline: all this happens on loopback.
  "network.manage-offline-status": false,
  // Shows JSON as text.
  "devtools.jsonview.enabled": false,
  // A prompt takes clicks at once, not after 500 ms.
  "security.notification_enable_delay": 0,
  // A worker may open a window for 3 s after a click on a notification, not for 1 s: on a busy
  // machine half a second of waiting for a hook and two questions to Firefox take longer.
  "dom.webnotifications.disable_open_click_delay": 3_000,
  // puppeteer lets each page believe that it has the focus: then none can be brought to the front.
  "focusmanager.testmode": false
}

/** Accepts the certificates of tests. A browser that does not respond fails within 30 s. */
const common = {
  headless: true,
  acceptInsecureCerts: true,
  protocolTimeout: 30_000,
  // For the start, which takes long where several browsers start at once.
  timeout: 90_000
}

export const startFirefox = (executablePath: string, pushServerUrl?: string): Promise<Browser> =>
  launch({
    ...common,
    browser: "firefox",
    executablePath,
    // Its own windows can be driven, as prompts and notifications are.
    args: ["--remote-allow-system-access"],
    extraPrefsFirefox: {
      ...preferences,
      ...(pushServerUrl === undefined ? {} : pushPreferences(pushServerUrl))
    }
  })

/** Without a vendor, `subscribe()` waits for a connection to that of Chromium's maker, for ever. */
export const startChromium = (executablePath: string, vendor?: ChromiumVendor): Promise<Browser> =>
  launch({
    ...common,
    browser: "chrome",
    executablePath,
    // Its sandbox does not work for root.
    args: [...(process.getuid?.() === 0 ? ["--no-sandbox"] : []), ...(vendor?.flags ?? [])]
  })

/** Without a call, a page has the state "prompt": nobody has decided yet. */
export const setNotifications = (
  browser: Browser | BrowserContext,
  origin: string,
  state: "granted" | "denied" | "prompt"
): Promise<void> => browser.setPermission(origin, { permission: { name: "notifications" }, state })
