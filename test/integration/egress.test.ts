// Names that resolve to internal addresses, in the running service: it calls no address that it did
// not check.
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { audit } from "#cli/audit.ts"
import { natsLayer } from "#nats/layer.ts"
import { finished, join, publish } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { scriptedDns } from "../support/scripted-dns.ts"
import { startService } from "../support/service.ts"

/** What became of the only push of a new broadcast. */
const sent = async (natsUrl: string, base: string) => {
  const broadcast = await publish(base, "news", { n: 1 })
  await finished(base, "news", broadcast)
  const { pushes } = await Effect.runPromise(
    audit(Number(broadcast)).pipe(Effect.provide(natsLayer({ url: natsUrl, name: "test" })))
  )
  return pushes.map(({ fate, reason, status }) => [fate, reason, status])
}

describe("a push service by a name", () => {
  it("that turns private is called over the connection that is open, and over no other", {
    timeout: 60_000
  }, async () => {
    await using nats = await startNats()
    using dns = scriptedDns()
    const push = await startPushService({ host: "localhost" })
    await using service = await startService({
      natsUrl: nats.url,
      env: { ...dns.env, BELLCAST_RETRY_BASE_MILLIS: "10" }
    })
    dns.say("127.0.0.1")
    const agent = push.subscribe()
    await join([service.url], "news", [agent.subscription])
    const delivered = ["delivered" as const, "accepted" as const, 201]
    assert.deepEqual(await sent(nats.url, service.url), [delivered])
    dns.say("10.0.0.1")
    assert.deepEqual(await sent(nats.url, service.url), [delivered])
    await push[Symbol.asyncDispose]()
    await using next = await startPushService({
      host: "localhost",
      port: Number(new URL(push.origin).port)
    })
    assert.deepEqual(await sent(nats.url, service.url), [
      ["dead", "attempts-used-up:address-not-allowed", undefined]
    ])
    assert.equal(next.requests, 0)
  })

  it("that the operator allows, and that leads to this machine, is not called", {
    timeout: 60_000
  }, async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    const env = {
      BELLCAST_ALLOW_LOOPBACK_ENDPOINTS: "false",
      BELLCAST_PUSH_HOSTS: "localhost",
      BELLCAST_RETRY_BASE_MILLIS: "10"
    }
    await using service = await startService({ natsUrl: nats.url, env })
    const { keys } = push.subscribe().subscription
    // Nothing need listen there: a call would end as "refused", and be made again.
    await join([service.url], "news", [
      { endpoint: "https://localhost/push/1", expirationTime: null, keys }
    ])
    assert.deepEqual(await sent(nats.url, service.url), [
      ["dead", "attempts-used-up:address-not-allowed", undefined]
    ])
  })
})
