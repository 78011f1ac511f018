// A publisher stores a bounded number of changes of a state, and can always stop a broadcast.
import { assert, it } from "vitest"
import { call, join } from "../support/client.ts"
import { startPushService } from "../support/push-service.ts"
import { useService } from "../support/use-service.ts"

const shared = useService({ env: { BELLCAST_BROADCAST_BYTES_PER_PUBLISHER_PER_HOUR_MAX: "16000" } })

it("counts each resumption of a broadcast, and always lets it be stopped", async () => {
  const { url } = shared.service
  // Deferred for longer than the test takes, so that the broadcast stays unfinished.
  await using push = await startPushService()
  const agent = push.subscribe({ script: ["503 retry-after 600"] })
  await join([url], "stop", [agent.subscription])
  const { body } = await call(url, "POST", "/channels/stop", "lea", { data: { n: 1 } })
  const change = async (state: string) =>
    (await call(url, "PATCH", `/broadcasts/${body.id}`, "lea", { data: { state } })).status
  const resumed: Array<number> = []
  while (resumed.at(-1) !== 429 && resumed.length < 20) {
    assert.equal(await change("paused"), 200)
    resumed.push(await change("running"))
  }
  assert.equal(resumed.at(-1), 429)
  assert.isAbove(resumed.length, 10)
  assert.equal(await change("paused"), 200)
  assert.equal(await change("cancelled"), 200)
})
