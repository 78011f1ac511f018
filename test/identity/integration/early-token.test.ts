// A token that its server uses before gateways know it.
import { jetstream } from "@nats-io/jetstream"
import { headers } from "@nats-io/transport-node"
import { expect, it } from "vitest"
import { freshToken, hashOfToken } from "#identity/tokens/own-token.ts"
import { startNats } from "#test/nats.ts"
import { connectAdmin } from "#test/nats-admin.ts"
import { startService } from "#test/service.ts"

it("works once it is stored, although it was refused just before", async () => {
  await using nats = await startNats()
  const env = { BELLCAST_AUTH_POLICIES: "token" }
  const roles = "gateway,projection"
  await using service = await startService({ natsUrl: nats.url, roles, env })
  await using admin = await connectAdmin(nats.url)
  const token = freshToken()
  const authorization = `Bearer ${token}`
  const publish = async () =>
    (await fetch(`${service.url}/channels/news`, { method: "POST", headers: { authorization } }))
      .status
  expect(await publish()).toBe(401)
  const head = headers()
  head.set("Bellcast-Type", "token.put/1")
  const body = JSON.stringify({ hash: hashOfToken(token), channels: ["news"], at: Date.now() })
  await jetstream(admin.nc).publish("bellcast.cmd.token.early", body, { headers: head })
  // Tokens of other policies are not verified again for 10 s.
  await expect.poll(publish, { interval: 500, timeout: 5_000 }).toBe(202)
})
