// The time between two events of a stream (contract 4.13: at most four in a second).
import { assert, it } from "vitest"
import { broadcastPath, changeState } from "../support/broadcast-states.ts"
import { publishAt, until } from "../support/client.ts"
import { type Events, follow } from "../support/events.ts"
import { startNats } from "../support/nats.ts"
import { startService } from "../support/service.ts"

const untilEvents = (stream: Events, count: number) =>
  until(
    async () => stream,
    ({ events }) => events.length >= count
  )

it("lies between two events of a stream, also after the first: 250 ms", async () => {
  await using nats = await startNats()
  await using service = await startService({ natsUrl: nats.url, roles: "gateway,projection" })
  const { url } = service
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
