// The token of an operator: sees and changes what is everybody's, and leaves a record.
import { assert, it } from "vitest"
import { call } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { createToken, runCli } from "../support/run-cli.ts"
import { startService } from "../support/service.ts"
import { storedText } from "../support/stored-text.ts"

it("the token of an operator sees and stops the broadcasts of others, and publishes nowhere", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats()
  const env = { BELLCAST_AUTH_POLICIES: "basicauth token" }
  await using service = await startService({ natsUrl: nats.url, roles: "gateway,projection", env })
  const send = (token: string, method: string, path: string, body?: unknown) =>
    call(service.url, method, path, undefined, body, { authorization: `Bearer ${token}` })

  const { token: shop } = await createToken(nats.url, "shop", "--channel", "news")
  const { said, token: desk } = await createToken(nats.url, "desk", "--operator")
  assert.match(said, /has this token may act as an operator until/)
  const posted = await send(shop, "POST", "/channels/news", { data: { n: 1 } })
  const path = posted.headers.get("location")!.slice(service.url.length)
  const byId = path.replace(/\/channels\/[^/]+/, "")
  for (const each of [path, byId, "/broadcasts", "/channels/news/broadcasts"])
    assert.deepEqual([each, (await send(desk, "GET", each)).status], [each, 200])
  for (const each of ["/channels/news", "/channels/news/members", "/registrations"])
    assert.deepEqual([each, (await send(desk, "GET", each)).status], [each, 403])
  assert.equal((await send(desk, "POST", "/channels/news", {})).status, 403)
  const patched = await send(desk, "PATCH", byId, { data: { state: "cancelled" } })
  assert.equal(patched.status, 200)
  assert.match(await storedText(nats.url), /evt\.state\.\d+ .*"by":"token:desk"/)
  const { user } = (await send(desk, "GET", "/")).body
  assert.deepInclude(user, { id: "token:desk", operator: true })
  const { stdout } = await runCli(["token", "list", "--json", "--nats", nats.url])
  assert.match(stdout, /"name":"desk","channels":\[\],"users":false,"operator":true/)
})
