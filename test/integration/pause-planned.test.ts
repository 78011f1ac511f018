// Broadcasts that are paused before they are planned.
import { afterAll, assert, describe, it } from "vitest"
import { broadcastPath, changeState, untilShown } from "../support/broadcast-states.ts"
import { finishedAt, join, publish, until } from "../support/client.ts"
import { connectAdmin, countAnswers } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { unchanged } from "../support/quiet.ts"
import { type Service, startService } from "../support/service.ts"
import { useService } from "../support/use-service.ts"

describe("a broadcast that is paused before it is planned", () => {
  const shared = useService({ roles: "gateway,projection,tally,delivery" })
  let fanout: Service | undefined
  const startFanout = async () => {
    fanout ??= await startService({ natsUrl: shared.nats.url, roles: "fanout" })
    return fanout
  }
  afterAll(() => fanout?.[Symbol.asyncDispose]())

  // The first: no process plans yet.
  it("is sent after its resume", async () => {
    const { service } = shared
    await using push = await startPushService()
    const agent = push.subscribe()
    await join([service.url], "first", [agent.subscription], 1, "first")
    const id = await publish(service.url, "first", { n: 1 })
    await changeState(service.url, id, "paused")
    await startFanout()
    await untilShown(service.url, id, ({ shards }) => shards === 1)
    assert.equal(await unchanged(() => agent.received.length, 1_000), 0)
    await changeState(service.url, id, "running")
    assert.deepInclude(await finishedAt(service.url, broadcastPath(id)), {
      accepted: 1,
      delivered: 1
    })
    assert.lengthOf(agent.received, 1)
  })

  it("reaches all when it is planned after its resume looked for jobs", {
    timeout: 90_000
  }, async () => {
    const { nats, service } = shared
    await using push = await startPushService()
    const planner = await startFanout()
    await using admin = await connectAdmin(nats.url)
    const states = async () => await admin.jsm.consumers.info("BELLCAST_LOG", "states")
    // The resume of the first case is over. Its pause waits until the broadcast expires.
    await until(states, ({ num_ack_pending }) => num_ack_pending <= 1)
    const answered = await countAnswers(admin, "BELLCAST_LOG.states")
    const agent = push.subscribe()
    await join([service.url], "second", [agent.subscription], 1, "second")
    const looks = async () => (await states()).delivered.consumer_seq
    const before = await looks()
    planner.process.kill("SIGSTOP")
    const id = await publish(service.url, "second", { n: 1 })
    await changeState(service.url, id, "paused")
    await changeState(service.url, id, "running")
    // The pause, then the resume at once and after 1, 3 and 7 s. The next look is 8 s later.
    const looked = await until(looks, (count) => count >= before + 5)
    // This look is over, too: its delivery is answered.
    await until(answered, (count) => count >= looked - before)
    planner.process.kill("SIGCONT")
    const done = await finishedAt(service.url, broadcastPath(id), "publisher", 6_000)
    assert.deepInclude(done, { accepted: 1, delivered: 1 })
    assert.equal(await looks(), looked, "another look found the job")
  })
})
