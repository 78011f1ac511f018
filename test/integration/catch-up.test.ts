// A projector that was away passes over what was published meanwhile in batches: a write that waits
// behind 20,000 broadcasts waited 5 s for as many announcements.
import { jetstream } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { assert, it } from "vitest"
import { until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startService } from "../support/service.ts"

const broadcasts = 2_000

it("announces how far it is by the batch, not by the message, when it comes back", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats({ syncAlways: false })
  const before = await startService({ natsUrl: nats.url, roles: "projection" })
  await before.stop()
  const nc = await connect({ servers: nats.url })
  try {
    const js = jetstream(nc)
    await Promise.all(
      Array.from({ length: broadcasts }, () =>
        js.publish("bellcast.cmd.broadcast.billing.news", "{}")
      )
    )
    const announced: Array<number> = []
    nc.subscribe("bellcast.sys.applied", {
      callback: (_, msg) => void announced.push(msg.json<{ log: number }>().log)
    })
    await nc.flush()
    await using _ = await startService({ natsUrl: nats.url, roles: "projection" })
    await until(
      async () => announced.at(-1),
      (log) => log === broadcasts
    )
    assert.isBelow(announced.length, broadcasts / 20)
  } finally {
    await nc.close()
  }
})
