// Requests on NATS whose bodies name no target are handled like all others.
import { connect } from "@nats-io/transport-node"
import { assert, it } from "vitest"
import { until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startService } from "../support/service.ts"

const env = {
  BELLCAST_AUTH_POLICIES: "basicauth",
  BELLCAST_REQUESTS_PER_ADDRESS_PER_MINUTE_MAX: "10"
}

it("logs requests that name no target, and counts them towards the limit of a source", async () => {
  await using nats = await startNats()
  await using service = await startService({ natsUrl: nats.url, env })
  const client = await connect({ servers: nats.url })
  const codes: Array<number> = []
  for (let i = 0; i < 40; i++) {
    const operation = ["cancel", "members", "redrive", "member-put"][i % 4]
    const subject = `bellcast.api.billing.${operation}`
    const msg = await client.request(subject, i < 4 ? "not json" : "{}", { timeout: 15_000 })
    codes.push(JSON.parse(msg.string()).code)
  }
  await client.close()
  assert.deepEqual(codes.slice(0, 10), Array(10).fill(400))
  assert.equal(codes.at(-1), 429)
  const lines = await until(
    async () =>
      service
        .output()
        .split("\n")
        .filter((line) => line.includes("request.summary")),
    (found) => found.length >= codes.length
  )
  assert.deepInclude(JSON.parse(lines[0]!), { uid: "nats:billing", code: 400 })
})
