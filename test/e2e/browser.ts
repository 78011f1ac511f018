// Finds Firefox and starts it without a screen, and may give it the push service of the test.
import { spawnSync } from "node:child_process"
import { type Browser, launch } from "puppeteer-core"

/** Undefined where there is none. */
export const firefoxPath = spawnSync("which", ["firefox-esr", "firefox"], { encoding: "utf8" })
  .stdout?.split("\n")
  .find((path) => path !== "")

const pushPreferences = (pushServerUrl: string) => ({
  "dom.push.serverURL": pushServerUrl,
  // Else only wss is taken.
  "dom.push.testing.allowInsecureServerURL": true,
  // Its default, but a driven Firefox switches push off unless it is told.
  "dom.push.connection.enabled": true,
  // Reconnect after 200 ms (times 2 each attempt), not after 5 s.
  "dom.push.retryBaseInterval": 200,
  // Allow notifications: there is nobody to ask.
  "permissions.default.desktop-notification": 1,
  // There is no D-Bus to show them.
  "alerts.useSystemBackend": false
})

/** Without a push service, pages cannot subscribe. */
export const startFirefox = (executablePath: string, pushServerUrl?: string): Promise<Browser> =>
  launch({
    browser: "firefox",
    executablePath,
    headless: true,
    extraPrefsFirefox: {
      // A sandbox without a network is not offline: all this happens on loopback.
      "network.manage-offline-status": false,
      ...(pushServerUrl === undefined ? {} : pushPreferences(pushServerUrl))
    }
  })
