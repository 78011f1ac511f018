// A push that is held before it is sent, as its broadcast is paused, takes no turn from others.
import { assert, it } from "vitest"
import type { Push } from "#delivery/push-service/push.ts"
import { PushService } from "#delivery/push-service/push-service.ts"

const now = 1_800_000_000_000
const minute = 60_000

it("a push service gives the turn of a held push to the next one", () => {
  const lane = new PushService("https://push.example.com", "k", {
    ...{ pushesUnderWayMax: 64, hasHeadroom: () => true },
    ...{ breakerOpenMillis: minute, retryBaseMillis: 10_000 }
  })
  lane.merge(
    { v: 1, worker: "w", origin: lane.origin, key: "k", answers: 0, gone: 0, holds: true },
    now
  )
  const push: Push = {
    ...{ subscription: "s1", user: "u", generation: 1, broadcast: 2, saidGone: true },
    ...{ acceptedAt: now, storedAt: now, sentAt: now }
  }
  assert.isUndefined(lane.deferral(push, now))
  assert.equal(lane.deferral(push, now)?.reason, "mass-gone")
  lane.held(push)
  assert.isUndefined(lane.deferral(push, now))
})
