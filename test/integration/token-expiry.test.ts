// Whether operators see before it happens that a server's token ends.
import { assert, it } from "vitest"
import { call, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { createToken, runCli } from "../support/run-cli.ts"
import { startService } from "../support/service.ts"

const hourMillis = 3_600_000

it("shows when each token ends, to operators only, until it is revoked", {
  timeout: 180_000
}, async () => {
  await using nats = await startNats()
  const start = () =>
    startService({ natsUrl: nats.url, env: { BELLCAST_AUTH_POLICIES: "basicauth,token" } })
  const shown = (text: string) =>
    [...text.matchAll(/^bellcast_token_expires_timestamp_seconds\{token="(\w+)"\} (\S+)$/gm)].map(
      ([, name, seconds]) => [name!, Number(seconds)] as const
    )
  {
    await using first = await start()
    await createToken(nats.url, "shop", "--channel", "news")
    await createToken(nats.url, "desk", "--operator")
    const site = ["token", "create", "site", "--users", "--expires", "never", "--nats", nats.url]
    assert.equal((await runCli(site)).code, 0)
    await first.stop()
  }
  await using service = await start()
  const read = async () => shown(String((await call(service.metricsUrl(), "GET", "/metrics")).body))
  const found = Object.fromEntries(await until(read, (list) => list.length > 0))
  assert.sameMembers(Object.keys(found), ["shop", "desk"])
  assert.approximately(found["shop"]! * 1_000, Date.now() + hourMillis, 600_000)
  const open = String((await call(service.url, "GET", "/__metrics__")).body)
  assert.deepEqual(shown(open), [], "shown to everybody")
  const revoked = await runCli(["token", "revoke", "shop", "--nats", nats.url])
  assert.equal(revoked.code, 0, revoked.stderr)
  const left = await until(read, (list) => list.length === 1, 60_000)
  assert.equal(left[0]![0], "desk")
})
