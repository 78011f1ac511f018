// The secret of user ids: another secret would change the id of every user, so the service does not
// start.
import { assert, it } from "vitest"
import { startNats } from "../support/nats.ts"
import { startService } from "../support/service.ts"

it("a service does not start with another secret than the first", { timeout: 60_000 }, async () => {
  await using nats = await startNats({ syncAlways: false })
  const start = async (secret: string) => {
    await using service = await startService({
      natsUrl: nats.url,
      env: { BELLCAST_USERID_HMAC_SECRET: secret }
    })
    assert.strictEqual(await service.stop(), 0)
  }
  await start("a first secret, of thirty-two bytes and more")
  const refused = await start("another secret, of thirty-two bytes and more").then(
    () => "it started",
    (error: Error) => error.message
  )
  assert.include(
    refused,
    "cannot start. BELLCAST_USERID_HMAC_SECRET is not the one that this NATS was used with before"
  )
  assert.notMatch(refused, /a first secret|another secret/)
  await start("a first secret, of thirty-two bytes and more")
})
