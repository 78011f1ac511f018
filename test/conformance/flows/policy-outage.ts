// The responses of a gateway while the server of its policy is away.
import { expect, it } from "vitest"
import { Api, type Target } from "../api.ts"
import type { Login } from "../logins/login.ts"
import { check } from "../table.ts"

/** An outage of the server on which the policy of a login depends; no test where there is none. */
export const testPolicyOutage = (login: Login, target: () => Target): void => {
  if (!login.isInHeartbeat) return
  it(`responds 503 while the server of ${login.name} is away, and works after it`, async () => {
    const api = new Api(target())
    const { end, ...outage } = await api.target.users.outage!()
    const request = { ...outage, as: null }
    try {
      const expected = { status: 503, errno: 201, headers: { "Retry-After": /^\d+$/ } }
      check(await api.send(request), request, expected)
    } finally {
      end()
    }
    // Once a second: Portier takes 20 logins of one client for one mail address in an hour.
    const often = { timeout: 15_000, interval: 1_000 }
    await expect.poll(async () => (await api.list()).status, often).toBe(200)
  })
}
