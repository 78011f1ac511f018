// A broadcast that cannot be sent is over, for whoever waits for its end.
import { jetstream } from "@nats-io/jetstream"
import { headers } from "@nats-io/transport-node"
import { assert, it } from "vitest"
import { broadcastPath, changeState } from "../support/broadcast-states.ts"
import { finishedAt } from "../support/client.ts"
import { follow } from "../support/events.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startService } from "../support/service.ts"

it("is finished when it is rejected, also after it was cancelled", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats()
  await using service = await startService({ natsUrl: nats.url, roles: "gateway,projection" })
  await using admin = await connectAdmin(nats.url)
  const wrong = headers()
  wrong.set("Bellcast-Start-At", "tomorrow")
  const subject = "bellcast.cmd.broadcast.billing.news"
  const publish = async () =>
    String((await jetstream(admin.nc).publish(subject, "{}", { headers: wrong })).seq)
  const rejected = await publish()
  const cancelled = await publish()
  await changeState(service.url, cancelled, "cancelled")
  const streams = await Promise.all(
    [rejected, cancelled].map((id) => follow(`${service.url}${broadcastPath(id)}/events`))
  )
  await using _fanout = await startService({ natsUrl: nats.url, roles: "fanout,tally" })
  const states = ["finished", "cancelled"]
  for (const [i, id] of [rejected, cancelled].entries()) {
    const shown = await finishedAt(service.url, broadcastPath(id), "publisher", 10_000)
    assert.deepInclude(shown, { state: states[i], finished: true, accepted: 0 })
    assert.isString(shown.rejected)
    await streams[i]!.ended
    assert.deepEqual(streams[i]!.events.at(-1)?.data, shown)
  }
})
