// A response on NATS that is larger than NATS lets messages be: an error that says what to do.
import { connect } from "@nats-io/transport-node"
import { assert, it } from "vitest"
import { startNats } from "../support/nats.ts"
import { startService } from "../support/service.ts"

/** 100 channels in the row of a broadcast. */
const channels = Array.from({ length: 100 }, (_, i) => `${i}`.padStart(255, "x"))

it("says that a list does not fit into a message, and takes a limit", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats({ syncAlways: false })
  const env = { BELLCAST_CHANNEL_WRITE_PRINCIPALS: "nats:billing" }
  await using _ = await startService({ natsUrl: nats.url, roles: "gateway,projection", env })
  await using opened = new AsyncDisposableStack()
  const nc = await connect({ servers: nats.url })
  opened.defer(() => nc.close())
  const request = async (operation: string, body: object) => {
    const subject = `bellcast.api.billing.${operation}`
    const msg = await nc.request(subject, JSON.stringify(body), { timeout: 15_000 })
    return { code: msg.headers?.get("Nats-Service-Error-Code"), body: msg.json() as never }
  }
  for (let i = 0; i < 45; i++) {
    const { code } = await request("publish", { data: { i }, to: { channels } })
    assert.include(["", undefined], code)
  }
  const whole = await request("broadcasts", {})
  assert.equal(whole.code, "413")
  const message = "The response is larger than NATS lets messages be: ask for fewer with _limit."
  assert.deepInclude(whole.body as object, { code: 413, error_code: "too-large-for-nats", message })
  const { data } = (await request("broadcasts", { _limit: "20" })).body as { data: Array<object> }
  assert.lengthOf(data, 20)
})
