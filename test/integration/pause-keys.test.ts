// A pause while an attempt with several requests is under way: one with each VAPID key, to a push
// service that is slow to respond that a key is the wrong one.
import { assert, it } from "vitest"
import { broadcastPath, changeState } from "../support/broadcast-states.ts"
import { finishedAt, publish } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { secretEnvironment, startService } from "../support/service.ts"
import { enter, rotate } from "../support/vapid-keys.ts"

/** Three of them take longer than the ack wait, 15 s; each is within the time-out of a push. */
const slow = "slow 9300"
const mismatch = `${slow} 403 {"reason":"VapidPkHashMismatch"}`

it("sends what was under way once, first attempts and retries", { timeout: 180_000 }, async () => {
  await using nats = await startNats()
  await using push = await startPushService()
  const env = await rotate(await rotate({ ...secretEnvironment, BELLCAST_NATS_URL: nats.url }))
  const patient = { ...env, BELLCAST_PUSH_TIMEOUT_MILLIS: "15000" }
  await using service = await startService({ natsUrl: nats.url, env: patient })
  const first = push.subscribe({ script: [mismatch, mismatch, slow, "201"] })
  const retried = push.subscribe({
    script: ["503 retry-after 1", mismatch, mismatch, slow, "201"]
  })
  for (const [name, agent] of Object.entries({ first, retried }))
    await enter(service.url, name, agent)
  const id = await publish(service.url, "news", { n: 1 })
  await push.waitFor(() => first.attempts.length === 1 && retried.attempts.length === 2)
  for (const state of ["paused", "running"]) await changeState(service.url, id, state)
  const done = await finishedAt(service.url, broadcastPath(id), "publisher", 120_000)
  assert.deepInclude(done, { state: "finished", accepted: 2, delivered: 2 })
  assert.deepInclude(push.counts, { distinct: 2, duplicates: 0 })
})
