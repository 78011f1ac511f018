// What connections to push services go through, through the running service with its default
// settings: nobody is missed, and nobody is sent to twice beyond what the case allows.
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { finished, publish } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { startNats } from "../support/nats.ts"
import { playerOf, reply } from "../support/push-script.ts"
import { type PushServiceOptions, startPushService } from "../support/push-service.ts"
import { elapsed } from "../support/quiet.ts"
import { startService } from "../support/service.ts"
import { trustingEnvironment } from "../support/tls.ts"
import type { UserAgent } from "../support/user-agent.ts"

/** Pushes on one session at most, see choice.ts. */
const streamsPerSession = 32
/** HTTP/2 sessions to one push service at most, see choice.ts. */
const sessionsMax = 16

let nats: Awaited<ReturnType<typeof startNats>>
let service: Awaited<ReturnType<typeof startService>>

beforeAll(async () => {
  nats = await startNats({ syncAlways: false })
  // The default time-out of a push. With a shorter one, a busy machine responds too late to some,
  // and these are sent again.
  service = await startService({ natsUrl: nats.url, env: trustingEnvironment })
})
afterAll(async () => {
  await service?.[Symbol.asyncDispose]()
  await nats?.[Symbol.asyncDispose]()
})

const startPeer = (options: PushServiceOptions) =>
  startPushService({ tls: true, http2: true, host: "localhost", ...options })
type Peer = Awaited<ReturnType<typeof startPeer>>

/** A channel of its own with so many browsers, and a broadcast to them. */
const broadcastTo = async (
  push: Peer,
  channel: string,
  count: number,
  script = ["201"],
  prepare: (agent: UserAgent) => void = () => {}
) => {
  const agents = Array.from({ length: count }, () => push.subscribe({ script }))
  agents.forEach(prepare)
  const subscriptions = agents.map(({ subscription }) => subscription)
  await fillChannels(nats.url, [{ name: channel, subscriptions }])
  const id = await publish(service.url, channel, { n: 1 })
  return { agents, ended: () => finished(service.url, channel, id) }
}

const versionsOf = ({ agents }: Awaited<ReturnType<typeof broadcastTo>>) =>
  agents.flatMap(({ received }) =>
    received.map(({ headers }) => (":path" in headers ? "HTTP/2" : "HTTP/1.1"))
  )

describe("a push service over HTTP/2", () => {
  it("that ends each session after 40 streams (GOAWAY) gets every push once", async () => {
    await using push = await startPeer({ streamsPerSession: 40 })
    const broadcast = await broadcastTo(push, "goaway", 200)
    assert.deepInclude(await broadcast.ended(), { accepted: 200, delivered: 200 })
    assert.deepInclude(push.counts, { requests: 200, distinct: 200, duplicates: 0 })
    assert.notInclude(service.output(), "cannot be reached")
  })

  it("of which one session stalls gets the rest, then that session's pushes again", async () => {
    await using push = await startPeer({ roundTripMillis: 20 })
    const broadcast = await broadcastTo(push, "stall", 250, ["slow 50"])
    await push.waitFor(({ counts }) => counts.distinct >= 60, 30_000)
    push.stallOne()
    const done = await broadcast.ended()
    assert.deepInclude(done, { accepted: 250, delivered: 250 })
    assert.equal(push.counts.distinct, 250)
    assert.isAtMost(push.counts.duplicates, streamsPerSession)
    assert.isAbove(push.connections(), 2, "nothing stalled")
    assert.notInclude(service.output(), "cannot be reached")
  })

  it("that takes one stream a session gets every push once, over a few sessions", async () => {
    await using push = await startPeer({ streamsMax: 1, roundTripMillis: 0 })
    const broadcast = await broadcastTo(push, "one", 120, ["slow 20"])
    assert.deepInclude(await broadcast.ended(), { accepted: 120, delivered: 120 })
    assert.deepInclude(push.counts, { requests: 120, distinct: 120 })
    assert.isAtMost(push.connections(), sessionsMax)
  })

  it("that falls back to HTTP/1.1 in the middle gets every push once", async () => {
    await using push = await startPeer({})
    const broadcast = await broadcastTo(push, "fallback", 250, ["slow 50"])
    await push.waitFor(({ counts }) => counts.distinct >= 60, 30_000)
    push.fallBack()
    assert.deepInclude(await broadcast.ended(), { accepted: 250, delivered: 250 })
    assert.deepInclude(push.counts, { requests: 250, distinct: 250 })
    assert.sameMembers([...new Set(versionsOf(broadcast))], ["HTTP/2", "HTTP/1.1"])
  })
})

describe("a push service of which some pushes fail", () => {
  it("gets these again over HTTP/2, and every other one once", async () => {
    await using push = await startPeer({})
    const scripts = [["503", "201"], ["reset", "201"], ["410"], ["huge"]]
    const broadcast = await broadcastTo(push, "failing", 104, ["201"], (agent) => {
      const script = scripts.shift()
      if (script !== undefined) agent.answerBy(playerOf(script))
    })
    assert.deepInclude(await broadcast.ended(), { accepted: 104, delivered: 103, gone: 1 })
    assert.deepEqual([...new Set(versionsOf(broadcast))], ["HTTP/2"])
    assert.deepEqual(push.faults, [])
    assert.equal(push.counts.duplicates, 0)
  })
})

describe("a push service that throttles a wide window", () => {
  it("gets half as many at a time, and every push once", async () => {
    await using push = await startPeer({})
    const [slow, throttle] = [playerOf(["slow 300"])(), reply(429)]
    const { promise: reached, resolve: reach } = Promise.withResolvers<void>()
    let [begun, underWay, most] = [0, 0, 0]
    const prepare = (agent: UserAgent) => {
      const play: typeof slow.play = (request, response) => {
        underWay += 1
        most = Math.max(most, underWay)
        if (most === 100) reach()
        response.once("close", () => {
          underWay -= 1
        })
        // The window grows with the responses to the first pushes. The later ones fill it, however
        // long this machine takes for them.
        begun += 1
        const filled = begun <= 64 ? Promise.resolve() : Promise.race([reached, elapsed(2_000)])
        void filled.then(() => slow.play(request, response))
      }
      // More than the window of 64 that a push service begins with.
      agent.answerBy(() => (underWay < 100 ? { ...slow, play } : throttle))
    }
    const broadcast = await broadcastTo(push, "wide", 450, ["201"], prepare)
    assert.deepInclude(await broadcast.ended(), { accepted: 450, delivered: 450 })
    assert.equal(most, 100)
    assert.deepInclude(push.counts, { distinct: 450, duplicates: 0 })
    const window = /throttles us: (\d+) pushes at a time/.exec(service.output())?.[1]
    assert.isTrue(Number(window) >= 50 && Number(window) <= 256, `halved to ${window}`)
  })
})
