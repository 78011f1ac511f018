// A pause while the connection to a push service opens: pushes that wait for it are not sent when
// it is there.
import { assert, it } from "vitest"
import { pushesOf } from "../support/audit.ts"
import { broadcastPath, changeState } from "../support/broadcast-states.ts"
import { finishedAt, joinAll, publish, until } from "../support/client.ts"
import { startPushService } from "../support/push-service.ts"
import { elapsed } from "../support/quiet.ts"
import { trustingEnvironment } from "../support/tls.ts"
import { useService } from "../support/use-service.ts"

const shared = useService({
  env: {
    ...trustingEnvironment,
    BELLCAST_RETRY_BASE_MILLIS: "200",
    // Retries go on when attempts from before the pause must be over.
    BELLCAST_PUSH_TIMEOUT_MILLIS: "4000"
  }
})

/** A connection takes two round trips, of the five seconds that it may take. */
const roundTripMillis = 1_600
const count = 5

it.concurrent.for([
  ["a push", "running", ["201"], true],
  ["a push", "cancelled", ["201"], true],
  ["a push of HTTP/1.1", "running", ["201"], false],
  ["a retry", "running", ["503", "201"], true]
] as const)(
  "is heard by %s that waits, and then by one that is %s",
  { timeout: 60_000 },
  async ([what, state, script, http2]) => {
    const { nats, service } = shared
    const { url } = service
    await using push = await startPushService({
      ...{ tls: true, host: "localhost", roundTripMillis },
      // A retry needs another connection.
      ...(http2 ? { http2, streamsPerSession: count } : {})
    })
    const agents = Array.from({ length: count }, () => push.subscribe({ script }))
    const channel = `${what.replaceAll(/\W/g, "-")}-${state}`
    await joinAll(url, channel, agents)
    const id = await publish(url, channel, { n: 1 })
    await until(
      async () => push.connections(),
      (connections) => connections >= script.length
    )
    const before = count * (script.length - 1)
    await changeState(url, id, "paused")
    await elapsed(3 * roundTripMillis)
    assert.equal(push.requests, before)
    await changeState(url, id, state)
    const ended = await finishedAt(url, broadcastPath(id))
    const isSent = state === "running"
    const [delivered, cancelled] = isSent ? [count, 0] : [0, count]
    assert.deepInclude(ended, { accepted: count, delivered, cancelled })
    assert.equal(push.requests, before + delivered)
    if (!isSent) return
    const attempts = (await pushesOf(nats.url, id)).map((each) => each.attempts)
    assert.deepEqual(
      attempts,
      Array.from({ length: count }, () => script.length)
    )
  }
)
