// Which 404 and 410 responses are believed, and how often a push is retried while they are not.
import { assert, describe, it } from "@effect/vitest"
import type { Push } from "#delivery/attempt.ts"
import { type GonePush, MassGone } from "#delivery/push-service/mass-gone.ts"
import { PushService } from "#delivery/push-service/push-service.ts"
import { pushesAt } from "#test/judged-pushes.ts"

const now = 1_800_000_000_000
const minute = 60_000
const hour = 60 * minute

/** Knows everything since the log's first message. */
const knowing = () => new MassGone(() => 0)
const to = (subscription: string, generation = 1, broadcast = 100): GonePush => ({
  subscription,
  generation,
  broadcast
})
const many = (count: number) => Array.from({ length: count }, (_, i) => `s${i}`)
const toMany = (count: number, broadcast = 100) => many(count).map((s) => to(s, 1, broadcast))
const believed = (gone: MassGone, pushes: ReadonlyArray<GonePush>, at = now): number =>
  pushes.filter((push) => gone.gone(push, true, at).believed).length

describe("a subscription that no push was accepted for", () => {
  it("is believed gone at once while others are reached, and the guard does not count it", () => {
    const gone = knowing()
    for (let i = 0; i < 10; i++) {
      gone.accepted(to("good"), false, now)
      assert.strictEqual(
        believed(
          gone,
          many(45).map((each) => to(`${each}.${i}`))
        ),
        45
      )
    }
    assert.isFalse(gone.holding)
    assert.deepEqual(gone.takeCounts(), { answers: 10, gone: 0 })
  })

  it("is not believed in a long row, nor a minute after the last 2xx: a proxy may answer", () => {
    const gone = knowing()
    gone.accepted(to("good"), false, now)
    assert.isAtMost(believed(gone, toMany(1_000)), 50)
    assert.isTrue(gone.holding)
    const later = knowing()
    later.accepted(to("good"), false, now)
    assert.isAtMost(believed(later, toMany(1_000), now + minute), 50)
  })

  it("is one stored after the last broadcast that was taken, this one left out", () => {
    const held = (generation: number, knownFrom = 0, told = 0) => {
      const gone = new MassGone(() => knownFrom)
      gone.merge({ answers: 0, gone: 0 }, false, told, now)
      gone.accepted(to("good", 1, 50), false, now)
      gone.accepted(to("good", 1, 100), false, now)
      believed(gone, toMany(200), now)
      assert.isTrue(gone.holding)
      gone.accepted(to("good", 1, 100), false, now)
      return !gone.gone(to("asked", generation), true, now).believed
    }
    assert.isFalse(held(51))
    assert.isTrue(held(50), "it may have got the broadcast 50")
    assert.isTrue(held(51, 60), "this process did not see what was sent before 60")
    assert.isTrue(held(51, Number.POSITIVE_INFINITY), "this process knows nothing yet")
    assert.isTrue(held(51, 0, 70), "another worker has reached it with the broadcast 70")
  })

  it("is known again in the next broadcast, until a push to it is accepted", () => {
    const gone = knowing()
    gone.accepted(to("good"), false, now)
    believed(gone, toMany(100))
    assert.isTrue(gone.holding)
    const next = (subscription: string) => {
      gone.accepted(to("good", 1, 200), false, now + hour)
      return gone.gone(to(subscription, 1, 200), true, now + hour).believed
    }
    assert.isTrue(next("s90"))
    gone.accepted(to("s91", 1, 150), false, now + hour)
    believed(gone, toMany(100, 190), now + hour)
    assert.isTrue(gone.holding)
    assert.isFalse(next("s91"))
  })
})

describe("a proxy that says gone to everybody in the middle of a broadcast", () => {
  it("costs at most 50 of those who were reached before, however many were", () => {
    const gone = new MassGone(() => Number.POSITIVE_INFINITY)
    for (const each of many(10_000)) gone.accepted(to(each), false, now)
    assert.isAtMost(believed(gone, toMany(5_000, 101)), 50)
  })
})

describe("the counts of a worker", () => {
  it("make the guard hold from the 50th gone response, in a row or in the sum, said once", () => {
    const gone = new MassGone(() => Number.POSITIVE_INFINITY)
    const changes = many(500).map((each) => gone.gone(to(each), true, now).change)
    assert.deepEqual(
      changes.flatMap((each, i) => (each === undefined ? [] : [[i + 1, each]])),
      [[50, "holds"]]
    )
    const told = new MassGone(() => Number.POSITIVE_INFINITY)
    assert.isUndefined(told.merge({ answers: 49, gone: 49 }, false, 0, now))
    assert.strictEqual(told.gone(to("s1"), true, now).change, "holds")
  })

  it("are urgent from ten gone responses, without those that other workers counted", () => {
    const gone = new MassGone(() => Number.POSITIVE_INFINITY)
    gone.merge({ answers: 12, gone: 12 }, false, 0, now)
    believed(gone, toMany(9))
    for (let i = 0; i < 3; i++) gone.other(now)
    assert.isFalse(gone.isUrgent)
    gone.gone(to("s9"), true, now)
    assert.isTrue(gone.isUrgent)
    assert.deepEqual(gone.takeCounts(), { answers: 13, gone: 10 })
    assert.deepEqual(gone.takeCounts(), { answers: 0, gone: 0 })
    assert.isFalse(gone.isUrgent)
  })
})

describe("the processes of a group", () => {
  const processes = 4
  const pushTo = pushesAt(now)
  const started = (group: string | undefined) => {
    const all = Array.from(
      { length: processes },
      () =>
        new PushService("https://push.example.com", "k1", {
          pushesUnderWayMax: 8,
          hasHeadroom: () => true,
          breakerOpenMillis: minute,
          retryBaseMillis: 10_000,
          group: () => group
        })
    )
    const tell = (each: PushService) => {
      const gossip = each.takeGossip(String(all.indexOf(each)), now)
      if (gossip !== undefined)
        for (const other of all) if (other !== each) other.merge(gossip, now)
    }
    /** Sends a push by each process. Returns how many "gone" were believed. */
    const round = (n: number, status: 201 | 410): number =>
      all.filter((each, i) => {
        const push = pushTo(`s${n}.${i}`)
        const { judged } = each.judge(
          status === 201
            ? { kind: "delivered", reason: "accepted" }
            : { kind: "gone", reason: "gone" },
          push,
          status,
          now
        )
        if (each.isUrgent) tell(each)
        return judged.kind === "gone"
      }).length
    const rounds = (count: number, status: 201 | 410): number =>
      Array.from({ length: count }, (_, n) => round(n, status)).reduce((sum, each) => sum + each, 0)
    return { all, tell, rounds }
  }

  it("believe 50 in a row together, but for those that are not told yet", () => {
    const { all, rounds } = started("g")
    rounds(1_000, 201)
    assert.isAtMost(rounds(200, 410), 50 + (processes - 1) * 9)
    for (const each of all) assert.isTrue(each.stateAt(now).holding)
    const apart = started(undefined)
    apart.rounds(1_000, 201)
    assert.equal(apart.rounds(200, 410), processes * 49)
  })

  it("go on with a 2xx, whichever of them gets it", () => {
    const { all, rounds, tell } = started("g")
    rounds(1_000, 201)
    rounds(20, 410)
    const [first, second] = all
    assert.isTrue(second!.stateAt(now).holding)
    first!.judge({ kind: "delivered", reason: "accepted" }, pushTo("s"), 201, now)
    tell(first!)
    for (const each of all) assert.isFalse(each.stateAt(now).holding)
  })

  it("never hold for a push service that says gone of every third, as one does not", () => {
    const { all, rounds } = started("g")
    for (let n = 0; n < 1_000; n++) {
      rounds(2, 201)
      rounds(1, 410)
    }
    for (const each of all) assert.isFalse(each.stateAt(now).holding)
  })

  it("count neither those of another group, nor of processes that ended", () => {
    let group: string | undefined = "g"
    const [here, there] = [started("h").all[0]!, started("g").all[0]!]
    const ended = new PushService("https://push.example.com", "k1", {
      pushesUnderWayMax: 8,
      hasHeadroom: () => true,
      breakerOpenMillis: minute,
      retryBaseMillis: 10_000,
      group: () => group
    })
    const row = { group: "g", gone: 49, isNew: false }
    const gossip = { v: 1, worker: "w", origin: here.origin, key: "k1", gone: 0, holds: false, row }
    for (const each of [here, there, ended]) each.merge({ ...gossip, v: 1, answers: 100 }, now)
    group = undefined
    const believes = (each: PushService) =>
      each.judge({ kind: "gone", reason: "gone" }, pushTo("s"), 410, now).judged.kind === "gone"
    assert.deepEqual([here, there, ended].map(believes), [true, false, true])
  })
})

describe("while the guard holds", () => {
  const holding = () => {
    const gone = new MassGone(() => Number.POSITIVE_INFINITY)
    believed(gone, toMany(60))
    assert.isTrue(gone.holding)
    return gone
  }
  const probe = (gone: MassGone, at: number) => {
    if (!gone.mayProbe(to("s1"), at)) return false
    gone.probes(to("s1"), at)
    return true
  }

  it("one push at a time asks again, after 1, 2, 4, 8 and 15 minutes", () => {
    const gone = holding()
    const at = Array.from({ length: 60 }, (_, i) => i).filter((i) => {
      const sent = probe(gone, now + i * minute)
      if (sent) gone.gone(to("s1"), true, now + i * minute)
      return sent
    })
    assert.deepEqual(at, [0, 1, 3, 7, 15, 30, 45])
  })

  it("one that was held before it was sent leaves the next one its turn", () => {
    const gone = holding()
    const asksAt = (at: number) => {
      assert.isTrue(probe(gone, at))
      gone.withdrawn(to("other"))
      assert.isFalse(probe(gone, at))
      gone.withdrawn(to("s1"))
      assert.isTrue(probe(gone, at))
      assert.isFalse(probe(gone, at))
      gone.gone(to("s1"), true, at)
    }
    for (const minutes of [0, 1, 3, 7]) asksAt(now + minutes * minute)
    assert.isFalse(probe(gone, now + 14 * minute))
  })

  it("each that is taken lets the next one ask, and ten make it believe again", () => {
    const gone = holding()
    probe(gone, now)
    gone.gone(to("s1"), true, now)
    assert.isFalse(probe(gone, now + 1))
    const changes = many(10).map((each, i) => {
      const at = now + hour + i
      assert.isTrue(probe(gone, at))
      return gone.accepted(to(each), true, at)
    })
    assert.deepEqual(
      changes.filter((each) => each !== undefined),
      ["trusts"]
    )
    assert.isFalse(gone.holding)
    assert.isTrue(gone.mayProbe(to("s1"), now + hour + 20))
  })
})

/** Healthy are the multiples of 51. 7 and 510 have no common factor, so this order is mixed. */
const mixed = Array.from({ length: 510 }, (_, i) => (i * 7) % 510)
const healthyFirst = mixed.toSorted((a, b) => Math.sign(a % 51) - Math.sign(b % 51))

/** Plays an hour of one broadcast to 10 healthy and 500 gone subscriptions, as workers do. */
const playHour = (knownFrom: number, order: ReadonlyArray<number>) => {
  const pushService = new PushService("https://push.example.com", "k", {
    ...{
      pushesUnderWayMax: 64,
      hasHeadroom: () => true,
      breakerOpenMillis: minute,
      retryBaseMillis: 10_000
    },
    knownFrom: () => knownFrom
  })
  const pushOf = (i: number): Push => ({
    ...{ user: `u${i}`, subscription: `u${i}.id`, generation: 10 + i, broadcast: 1_000 },
    ...{ saidGone: false, acceptedAt: now, storedAt: now, sentAt: now }
  })
  const waiting = order.map((i) => ({ push: pushOf(i), at: now }))
  let requests = 0
  let removed = 0
  let delivered = 0
  while (true) {
    waiting.sort((a, b) => a.at - b.at)
    const next = waiting.shift()
    if (next === undefined || next.at > now + hour) return { requests, removed, delivered }
    const again = (until: number) =>
      waiting.push({ push: { ...next.push, saidGone: true }, at: Math.ceil(until) })
    const held = pushService.deferral(next.push, next.at)
    if (held !== undefined) {
      again(next.at + held.waitMillis)
      continue
    }
    requests += 1
    const isHealthy = Number(next.push.user.slice(1)) % 51 === 0
    const { judged } = isHealthy
      ? pushService.judge({ kind: "delivered", reason: "accepted" }, next.push, 201, next.at)
      : pushService.judge({ kind: "gone", reason: "gone" }, next.push, 410, next.at)
    if (judged.kind === "deferred") again(next.at + judged.waitMillis)
    if (judged.kind === "gone") removed += 1
    if (judged.kind === "delivered") delivered += 1
  }
}

describe("an hour of 500 made-up subscriptions beside 10 healthy ones", () => {
  it("costs about one request each, and removes most where the process saw them come", () => {
    const { delivered, removed, requests } = playHour(0, mixed)
    assert.strictEqual(delivered, 10)
    assert.isAtLeast(removed, 300)
    assert.isAtMost(requests, 700)
  })

  it("removes 49 forged subscriptions in a row per broadcast, with no more pushes", () => {
    const { delivered, removed, requests } = playHour(0, healthyFirst)
    assert.strictEqual(delivered, 10)
    assert.strictEqual(removed, 49)
    assert.isAtMost(requests, 530)
  })

  it("costs little more in a process that knows nothing, and that one removes at most 50", () => {
    const { delivered, removed, requests } = playHour(Number.POSITIVE_INFINITY, mixed)
    assert.strictEqual(delivered, 10)
    assert.isAtMost(removed, 50)
    assert.isAtMost(requests, 530)
  })
})
