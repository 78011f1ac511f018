// A push that is not sent takes no probe from others: it is deferred by another check, or
// withdrawn, as its broadcast is paused.
import { assert, describe, it } from "vitest"
import { PushService } from "#delivery/push-service/push-service.ts"
import { pushesAt } from "#test/judged-pushes.ts"

const now = 1_800_000_000_000
const minute = 60_000
const baseMillis = 10_000
const pushTo = pushesAt(now)

const newPushService = () =>
  new PushService("https://push.example.com", "k", {
    ...{ pushesUnderWayMax: 64, hasHeadroom: () => true },
    ...{ breakerOpenMillis: minute, retryBaseMillis: baseMillis }
  })
const gossip = { v: 1, worker: "w", origin: "https://push.example.com", key: "k" } as const
const guarded = { ...gossip, answers: 0, gone: 0, holds: true }

/** Its connectivity breaker waits for a probe at `now`. */
const silent = () => {
  const pushService = newPushService()
  const before = now - baseMillis
  for (let i = 0; i < 5; i++)
    pushService.failed("timeout", pushTo(`user${i}`, { sentAt: before }), before)
  assert.equal(pushService.deferral(pushTo("early"), before)?.reason, "unreachable")
  return pushService
}

describe("the probe of a push service that does not respond", () => {
  it("is left to the next push by one that the mass-gone guard defers", () => {
    const pushService = silent()
    pushService.merge(guarded, now)
    const gone = pushTo("gone", { saidGone: true })
    // The guard lets one such push pass, which probes both.
    assert.isUndefined(pushService.deferral(gone, now))
    const later = now + baseMillis
    assert.equal(pushService.deferral(gone, later)?.reason, "mass-gone")
    assert.isUndefined(pushService.deferral(pushTo("someone"), later))
    assert.equal(pushService.deferral(pushTo("another"), later)?.reason, "unreachable")
  })

  it("is left to the next push by one that the credentials breaker defers", () => {
    const pushService = silent()
    pushService.merge({ ...gossip, answers: 0, gone: 0, holds: false, openMillis: minute }, now)
    assert.equal(pushService.deferral(pushTo("someone"), now)?.reason, "breaker-open")
    pushService.merge({ ...gossip, answers: 0, gone: 0, holds: false, openMillis: 0 }, now)
    assert.isUndefined(pushService.deferral(pushTo("another"), now))
  })

  it("is left to the next push by one that was withdrawn before it was sent", () => {
    const pushService = silent()
    const withdrawn = pushTo("withdrawn")
    assert.isUndefined(pushService.deferral(withdrawn, now))
    assert.equal(pushService.deferral(pushTo("someone"), now)?.reason, "unreachable")
    pushService.withdrawn(pushTo("another"))
    assert.equal(pushService.deferral(pushTo("someone"), now)?.reason, "unreachable")
    pushService.withdrawn(withdrawn)
    assert.isUndefined(pushService.deferral(pushTo("someone"), now))
  })
})

describe("the probe of a push service that says of most subscriptions that they are gone", () => {
  it("is left to the next push by one that was withdrawn before it was sent", () => {
    const pushService = newPushService()
    pushService.merge(guarded, now)
    const push = pushTo("someone", { saidGone: true })
    assert.isUndefined(pushService.deferral(push, now))
    assert.equal(pushService.deferral(push, now)?.reason, "mass-gone")
    pushService.withdrawn(push)
    assert.isUndefined(pushService.deferral(push, now))
  })
})
