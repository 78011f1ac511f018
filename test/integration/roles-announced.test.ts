// Processes announce their roles: every process knows of a role that nobody runs.
import { assert, describe, it } from "vitest"
import { call, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startConfiguredNats } from "../support/nats-configured.ts"
import { claimPort } from "../support/ports.ts"
import { startService } from "../support/service.ts"

/** The announcements that are published from now on. */
const listen = async (url: string) => {
  const admin = await connectAdmin(url)
  const heard: Array<{ readonly process: string; readonly roles: ReadonlyArray<string> }> = []
  admin.nc.subscribe("bellcast.sys.process", { callback: (_, msg) => void heard.push(msg.json()) })
  await admin.nc.flush()
  return { heard, [Symbol.asyncDispose]: () => admin[Symbol.asyncDispose]() }
}

describe.concurrent("a role", { timeout: 180_000 }, () => {
  it("that nobody runs fails the heartbeat of every process within 75 s, by name", async () => {
    await using nats = await startNats({ syncAlways: false })
    await using gateway = await startService({ natsUrl: nats.url, roles: "gateway,projection" })
    const workers = await startService({ natsUrl: nats.url, roles: "fanout,delivery,tally" })
    const heartbeat = async () => {
      const response = await fetch(`${gateway.metricsUrl()}/__heartbeat__`)
      return { status: response.status, body: (await response.json()) as { roles: boolean } }
    }
    assert.equal((await heartbeat()).status, 200)
    await workers.kill()
    const killedAt = performance.now()
    const sick = await until(heartbeat, ({ body }) => !body.roles, 90_000)
    assert.isAbove(performance.now() - killedAt, 50_000)
    assert.isBelow(performance.now() - killedAt, 75_000)
    assert.equal(sick.status, 503)
    assert.match(
      gateway.output(),
      /"reason":"no process runs the role fanout, delivery, tally \(for 6\d s\): start one/
    )
    await using _workers = await startService({
      natsUrl: nats.url,
      roles: "fanout,delivery,tally"
    })
    await until(heartbeat, ({ status }) => status === 200, 10_000)
  })

  it("is announced when its process starts and ends", async () => {
    await using nats = await startNats({ syncAlways: false })
    await using service = await startService({ natsUrl: nats.url })
    await using listener = await listen(nats.url)
    const worker = await startService({ natsUrl: nats.url, roles: "delivery,tally" })
    const of = (roles: string) => listener.heard.filter((each) => each.roles.join() === roles)
    const all = "gateway,projection,fanout,delivery,tally"
    await until(
      async () => [of("delivery,tally").length, of(all).length] as const,
      ([ofWorker, ofService]) => ofWorker > 1 && ofService > 0
    )
    const { process } = of("delivery,tally")[0]!
    assert.equal(await worker.stop(), 0)
    await until(
      async () => of(""),
      (found) => found.length === 1 && found[0]!.process === process
    )
    assert.equal((await call(service.url, "GET", "/__heartbeat__")).status, 200)
  })

  it("is unknown to a login that may not use the subject, and the heartbeat says so", async () => {
    const subscribe = '{ allow: ">", deny: "bellcast.sys.process" }'
    const user = `{ user: u, password: p, permissions: { publish: ">", subscribe: ${subscribe} } }`
    const port = await claimPort()
    await using _nats = await startConfiguredNats(
      port,
      `jetstream: enabled\nauthorization { users: [${user}] }`
    )
    await using service = await startService({ natsUrl: `nats://u:p@127.0.0.1:${port}` })
    // At once it says that NATS refused a subscription.
    const sick = await until(
      () => call(service.url, "GET", "/__heartbeat__"),
      ({ body }) => !body.roles,
      30_000
    )
    assert.equal(sick.status, 503)
    assert.match(service.output(), /"reason":"NATS does not bring back what this process publishes/)
  })
})
