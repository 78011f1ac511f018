// New channels are limited by user and by address. Channels that somebody is registered on are open
// to everybody.
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { type Answer, call } from "../support/client.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { type Service, startService } from "../support/service.ts"

const max = 3

let nats: TestNats
let limited: Service
beforeAll(async () => {
  nats = await startNats({ syncAlways: false })
  limited = await startService({
    natsUrl: nats.url,
    env: {
      BELLCAST_TRUSTED_PROXIES: "127.0.0.1",
      BELLCAST_NEW_CHANNELS_PER_HOUR_MAX: String(max)
    }
  })
})
afterAll(async () => {
  for (const each of [limited, nats]) await each?.[Symbol.asyncDispose]()
})

const change = (method: string, user: string, channel: string, address: string) =>
  call(limited.url, method, `/channels/${channel}/registration`, user, undefined, {
    "x-forwarded-for": address
  })

const assertRefused = ({ body, headers, status }: Answer) => {
  assert.deepEqual([status, body.error_code], [429, "too-many-new-channels"])
  assert.match(body.message, /new channels/u)
  const seconds = Number(headers.get("retry-after"))
  assert.isAtMost(seconds, 3_600 / max)
  assert.isAbove(seconds, 3_600 / max - 60)
}

describe("new channels", { timeout: 60_000 }, () => {
  it("of a user end at the limit, from whatever address", async () => {
    for (let n = 0; n < max; n++)
      assert.equal((await change("PUT", "ann", `ann-${n}`, `192.0.2.${n}`)).status, 202)
    assertRefused(await change("PUT", "ann", "ann-more", "192.0.2.9"))
    // Registering again, and joining the channel of somebody else, begins none.
    assert.equal((await change("PUT", "ann", "ann-0", "192.0.2.9")).status, 202)
    assert.equal((await change("PUT", "bob", "bob-0", "192.0.2.9")).status, 202)
    assert.equal((await change("PUT", "ann", "bob-0", "192.0.2.9")).status, 202)
    assert.equal((await change("DELETE", "ann", "ann-0", "192.0.2.9")).status, 202)
    // Nobody is left on this channel: it would begin again.
    assertRefused(await change("PUT", "ann", "ann-0", "192.0.2.9"))
  })

  it("of an address end at the limit, whoever brings them", async () => {
    const address = "198.51.100.1"
    for (let n = 0; n < max; n++)
      assert.equal((await change("PUT", `cid-${n}`, `cid-${n}`, address)).status, 202)
    assertRefused(await change("PUT", "dan", "dan", address))
    assert.equal((await change("PUT", "dan", "cid-0", address)).status, 202)
    // What was refused for the address is none of the user.
    for (let n = 0; n < max; n++)
      assert.equal((await change("PUT", "dan", `dan-${n}`, `198.51.100.${n + 2}`)).status, 202)
    assert.match(limited.output(), /a user or an address brings too many new channels/u)
  })
})
