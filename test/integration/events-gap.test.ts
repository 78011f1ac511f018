// Streams of events before any broadcast is planned: the time between two events (contract 4.13: at
// most four in a second), and the last event of a broadcast that is rejected.
import { jetstream } from "@nats-io/jetstream"
import { headers } from "@nats-io/transport-node"
import { assert, it } from "vitest"
import { broadcastPath, changeState } from "../support/broadcast-states.ts"
import { finishedAt, publishAt, until } from "../support/client.ts"
import { type Events, follow } from "../support/events.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startService } from "../support/service.ts"
import { useService } from "../support/use-service.ts"

const shared = useService({ roles: "gateway,projection" })

const untilEvents = (stream: Events, count: number) =>
  until(
    async () => stream,
    ({ events }) => events.length >= count
  )

it("lies between two events of a stream, also after the first: 250 ms", async () => {
  const { url } = shared.service
  const id = await publishAt(url, "/channels/news", { data: { n: 1 } })
  const open = () => follow(`${url}${broadcastPath(id)}/events`)
  // Another stream keeps the poll going, so it may come at any moment after the first event.
  const streams = [await open()]
  for (const state of ["paused", "running", "paused"]) {
    const stream = await open()
    streams.push(stream)
    await untilEvents(stream, 1)
    await changeState(url, id, state)
    await untilEvents(stream, 2)
    const [first, second] = stream.events
    // An event that arrives late makes the time shorter.
    assert.isAtLeast(second!.at - first!.at, 150)
  }
  for (const stream of streams) stream.close()
})

// Starts the planner, so it comes last.
it("ends when it is rejected, also after it was cancelled", {
  timeout: 60_000
}, async () => {
  const { nats, service } = shared
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
  const states = ["rejected", "cancelled"]
  for (const [i, id] of [rejected, cancelled].entries()) {
    const shown = await finishedAt(service.url, broadcastPath(id), "publisher", 10_000)
    assert.deepInclude(shown, { state: states[i], finished: true, accepted: 0 })
    assert.isString(shown.rejected)
    await streams[i]!.ended
    assert.deepEqual(streams[i]!.events.at(-1)?.data, shown)
  }
})
