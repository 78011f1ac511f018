// A rebuild of the buckets beside a delivery process: all waiting pushes arrive, and no
// subscription is removed.

import { assert, it } from "@effect/vitest"
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { rebuildAt } from "#test/history.ts"
import { finished, join, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { playerOf } from "../support/push-script.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

const browsers = 30
const broadcasts = 15
const rebuilds = 4

it("delivers to everybody while the buckets are made anew", { timeout: 90_000 }, async () => {
  await using nats = await startNats({ syncAlways: false })
  await using push = await startPushService()
  const [slow, quick] = [playerOf(["slow 300"])(), playerOf(["slow 40"])()]
  let answer = slow
  const agents = Array.from({ length: browsers }, () => push.subscribe())
  for (const agent of agents) agent.answerBy(() => answer)
  const subscriptions = agents.map(({ subscription }) => subscription)
  const ids: Array<string> = []
  await using nc = Object.assign(await connect({ servers: nats.url }), {
    [Symbol.asyncDispose]: () => nc.close()
  })
  const jsm = await jetstreamManager(nc)
  const consumer = (name: string) => jsm.consumers.info("BELLCAST_WORK", name)
  {
    await using rest = await startService({
      natsUrl: nats.url,
      roles: "gateway,projection,fanout,tally"
    })
    await join([rest.url], "news", subscriptions)
    for (let n = 0; n < broadcasts; n++) ids.push(await publish(rest.url, "news", { n }))
    await until(
      () => consumer("deliver"),
      ({ num_pending }) => num_pending === broadcasts
    )
    await rest.stop()
  }
  // One broadcast at a time. Each takes more than a second until the first rebuild is over, so that
  // others wait for it, and then about 150 ms.
  const env = { BELLCAST_SHARDS_IN_FLIGHT: "1", BELLCAST_PUSHES_UNDER_WAY_MAX: "8" }
  await using _delivery = await startService({ natsUrl: nats.url, roles: "delivery", env })
  for (let n = 0; n < rebuilds; n++) {
    await rebuildAt(nats.url)
    const { num_pending, paused } = await consumer("deliver")
    assert.notStrictEqual(paused, true)
    // It did not just wait until everything was delivered.
    if (n === 0) assert.isAbove(num_pending, 0)
    answer = quick
  }
  await using rest = await startService({
    natsUrl: nats.url,
    roles: "gateway,projection,fanout,tally"
  })
  for (const id of ids) {
    assert.deepInclude(await finished(rest.url, "news", id), {
      accepted: browsers,
      delivered: browsers,
      gone: 0
    })
  }
  assert.isTrue(agents.every(({ received }) => received.length === broadcasts))
})
