// As much of the push service of Chromium's maker as it takes to subscribe: a browser checks in and
// gets a token for each subscription. It delivers nothing. The endpoint is the maker's, with the
// token at its end.
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { readBody } from "./push-checks.ts"

export interface ChromiumVendor extends AsyncDisposable {
  /** Command line of a Chromium that uses it. */
  readonly flags: ReadonlyArray<string>
  /** From now on `subscribe()` fails, or does not. */
  readonly refuse: (refuses: boolean) => void
  /** From now on nothing is answered, so `subscribe()` waits. */
  readonly fallSilent: () => void
}

/** AndroidCheckinResponse of Chromium's checkin.proto: stats_ok, android_id, security_token. */
const checkedIn = Buffer.from("0801390100000000000000410200000000000000", "hex")

export const startChromiumVendor = async (): Promise<ChromiumVendor> => {
  let refuses = false
  let isSilent = false
  const answerOf = (path: string | undefined) => {
    if (path === "/checkin") return checkedIn
    return refuses ? "Error=INVALID_SENDER" : `token=${randomBytes(16).toString("hex")}`
  }
  const server = createServer((request, response) => {
    void readBody(request, false)
      .then(() => isSilent || response.end(answerOf(request.url)))
      .catch(() => response.destroy())
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  return {
    flags: [
      `--gcm-checkin-url=${url}/checkin`,
      `--gcm-registration-url=${url}/register`,
      // Without this, Chromium connects to its maker for the pushes.
      `--gcm-mcs-endpoint=https://127.0.0.1:${port}`
    ],
    refuse: (next) => {
      refuses = next
    },
    fallSilent: () => {
      isSilent = true
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
  }
}
