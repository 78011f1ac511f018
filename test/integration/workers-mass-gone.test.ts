// Two delivery workers count the 410 responses of a push service together.
import { assert, describe, it } from "vitest"
import { call, publish, until } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { startPushService } from "../support/push-service.ts"
import { says, startWorkers } from "../support/workers.ts"

describe("two workers that hear 410 from everybody", () => {
  it("defer together after 50 removals, those before the gossip arrives aside", {
    timeout: 90_000
  }, async () => {
    await using push = await startPushService()
    await using service = await startWorkers({
      BELLCAST_PUSHES_UNDER_WAY_MAX: "2",
      BELLCAST_SHARDS_IN_FLIGHT: "1"
    })
    const channels = ["a", "b", "c", "d"]
    const filled = channels.map((name) => ({
      name,
      subscriptions: Array.from(
        { length: 100 },
        () => push.subscribe({ script: ["slow 50 410"] }).subscription
      )
    }))
    await fillChannels(service.natsUrl, filled)
    const broadcasts = await Promise.all(
      channels.map(
        async (channel) => [channel, await publish(service.url, channel, { n: 1 })] as const
      )
    )
    let gone = 0
    for (const [channel, broadcast] of broadcasts) {
      const counts = await until(
        async () =>
          (
            await call(
              service.url,
              "GET",
              `/channels/${channel}/broadcasts/${broadcast}`,
              "publisher"
            )
          ).body.data,
        ({ gone, retrying }) => gone + retrying === 100
      )
      gone += counts.gone
    }
    for (const each of service.workers)
      await says(each, /says of most subscriptions that they are gone/)
    // Each worker alone would remove 49, both 98. Each may remove nine that the other does not know
    // of yet, and those whose responses arrive while the gossip is on its way.
    assert.isAtMost(gone, 90)
  })
})
