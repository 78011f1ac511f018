// The credentials breaker: when it opens, which pushes pass as probes, what closes it.
import { assert, describe, it } from "@effect/vitest"
import { CredentialsBreaker } from "#delivery/push-service/breakers.ts"

const openMillis = 60_000
const now = 1_800_000_000_000
const hour = 60 * 60_000
/** A subscription that was stored an hour ago. */
const of = (user: string, id = "id") => ({
  user,
  subscription: `${user}.${id}`,
  storedAt: now - hour
})

const opened = () => {
  const breaker = new CredentialsBreaker(openMillis)
  const refusal = breaker.refused(of("a"), "credentials", now)
  assert.deepEqual(refusal, { until: now + openMillis, opens: true })
  return breaker
}

describe("the credentials breaker", () => {
  it("lets everything through until our credentials are refused", () => {
    const breaker = new CredentialsBreaker(openMillis)
    assert.isUndefined(breaker.admit(of("z"), now))
    assert.isFalse(breaker.accepted(of("z"), now))
    assert.isUndefined(breaker.admit(of("z"), now))
  })

  it("opens at the first refusal, once, and says when to come back", () => {
    const breaker = opened()
    assert.isAtMost(breaker.admit(of("b"), now + 1)!, now + 1 + openMillis)
    assert.isFalse(breaker.passes(now + 1))
    assert.deepEqual(breaker.refused(of("b"), "credentials", now + 5), {
      until: now + 5 + openMillis,
      opens: false
    })
  })

  it("closes with a 2xx", () => {
    const breaker = opened()
    assert.isTrue(breaker.accepted(of("z"), now + openMillis + 50))
    assert.isUndefined(breaker.admit(of("z"), now + openMillis + 51))
    assert.isUndefined(breaker.admit(of("y"), now + openMillis + 51))
  })

  it("stays open when a probe is refused, whatever was accepted before", () => {
    const breaker = new CredentialsBreaker(openMillis)
    breaker.accepted(of("z"), now)
    for (let i = 0; i < 20; i++) breaker.refused(of(`u${i}`), "credentials", now)
    assert.isUndefined(breaker.admit(of("b"), now + 2_000))
    assert.deepEqual(breaker.refused(of("b"), "credentials", now + 2_000), {
      until: now + 2_000 + openMillis,
      opens: false
    })
    assert.strictEqual(breaker.openMillis(now + 2_000), openMillis)
  })

  it("blames one subscription after a 2xx, and our key after 20 users in a row", () => {
    const breaker = new CredentialsBreaker(openMillis)
    breaker.accepted(of("z"), now)
    for (let i = 0; i < 500; i++)
      assert.strictEqual(breaker.refused(of("a", `id${i}`), "credentials", now), "lone")
    for (let i = 0; i < 18; i++)
      assert.strictEqual(breaker.refused(of(`u${i}`), "credentials", now), "lone")
    assert.deepInclude(breaker.refused(of("last"), "credentials", now) as object, { opens: true })
  })

  it("starts its row anew with every 2xx, and holds a proof for ten minutes", () => {
    const breaker = new CredentialsBreaker(openMillis)
    for (let i = 0; i < 60; i++) {
      if (i % 15 === 0) breaker.accepted(of("z"), now)
      assert.strictEqual(breaker.refused(of(`u${i}`), "credentials", now), "lone")
    }
    assert.isTrue(breaker.proven(now + 599_999))
    assert.isFalse(breaker.proven(now + 600_000))
    assert.deepInclude(breaker.refused(of("g"), "credentials", now + 600_000) as object, {
      opens: true
    })
  })

  it("remembers a subscription that was refused alone until it is accepted", () => {
    const breaker = new CredentialsBreaker(openMillis)
    const refused = (user: string, at: number) => breaker.refused(of(user), "credentials", at)
    breaker.accepted(of("z"), now)
    assert.strictEqual(refused("a", now), "lone")
    assert.strictEqual(refused("a", now + hour), "lone")
    assert.deepInclude(refused("b", now + hour) as object, { opens: true })
    assert.strictEqual(refused("a", now + hour + openMillis), "lone")
    assert.strictEqual(breaker.stateAt(now + hour + openMillis), "half-open")
    breaker.accepted(of("a"), now + 2 * hour)
    assert.deepInclude(refused("a", now + 3 * hour) as object, { opens: true })
  })

  it("opens with another worker's, at most as long as its own, and closes with it", () => {
    const breaker = new CredentialsBreaker(openMillis)
    assert.isTrue(breaker.merge(20_000, now))
    assert.isDefined(breaker.admit(of("a"), now))
    assert.strictEqual(breaker.openMillis(now + 5_000), 15_000)
    assert.isFalse(breaker.merge(20_000, now + 1), "it is open already")
    assert.strictEqual(breaker.openMillis(now + 1), 20_000, "and stays so as long as it is told")
    assert.isTrue(breaker.merge(0, now + 2))
    assert.isUndefined(breaker.admit(of("a"), now + 2))
    assert.isTrue(breaker.proven(now + 2))
    breaker.merge(10 * openMillis, now + 3)
    assert.strictEqual(breaker.openMillis(now + 3), openMillis)
  })
})

/**
 * Plays pushes to these users against a push service that refuses all but `genuine`: each push
 * comes back when the breaker says so. Returns the requests up to the first that is taken, or up to
 * the end.
 */
const play = (
  users: ReadonlyArray<string>,
  genuine: string | undefined,
  refusal: "key-mismatch" | "credentials",
  endMillis: number,
  { breaker = new CredentialsBreaker(openMillis), genuineStoredAt = now - hour } = {}
) => {
  const waiting = users.map((user, i) => ({
    push: { ...of(user, `id${i}`), ...(user === genuine ? { storedAt: genuineStoredAt } : {}) },
    at: now
  }))
  const requests: Array<number> = []
  while (true) {
    const next = waiting.shift()!
    if (next.at > now + endMillis) return { requests, millis: undefined }
    const held = breaker.admit(next.push, next.at)
    if (held === undefined) {
      requests.push(next.at - now)
      if (next.push.user === genuine) return { requests, millis: next.at - now }
    }
    const answer = held ?? breaker.refused(next.push, refusal, next.at)
    const at = Math.ceil(
      typeof answer === "number" ? answer : answer === "lone" ? next.at + openMillis : answer.until
    )
    assert.isAbove(at, next.at)
    let low = 0
    let high = waiting.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (waiting[middle]!.at <= at) low = middle + 1
      else high = middle
    }
    waiting.splice(low, 0, { push: next.push, at })
  }
}

const within = (requests: ReadonlyArray<number>, from: number, to: number) =>
  requests.filter((at) => at >= from && at < to).length

describe("probes of an open credentials breaker", () => {
  const others = Array.from({ length: 1_000 }, (_, i) => `u${i}`)

  const ofUsers = (refusal: "key-mismatch" | "credentials", count: number) => {
    const { millis, requests } = play(
      [...others.slice(0, count), "genuine"],
      "genuine",
      refusal,
      24 * hour
    )
    return { minutes: Math.round(millis! / 60_000), requests: requests.length }
  }

  it("find one healthy subscription behind 1,000 that were made with another key", () => {
    const { minutes, requests } = ofUsers("key-mismatch", 1_000)
    assert.isAtMost(minutes, 15, `${requests} requests`)
    assert.isAtMost(requests, 1_100)
  })

  it("find it behind 300 that are refused without saying why", () => {
    const { minutes, requests } = ofUsers("credentials", 300)
    assert.isAtMost(minutes, 30, `${requests} requests`)
    assert.isAtMost(requests, 330)
  })

  it.each([120, 1_000, 10_000])("find it within minutes behind %i without a reason", (count) => {
    const users = Array.from({ length: count }, (_, i) => `u${i}`)
    const { millis, requests } = play([...users, "genuine"], "genuine", "credentials", 24 * hour)
    assert.isAtMost(millis!, 6 * 60_000)
    assert.isAtMost(requests.length, count + 1)
  })

  it("find one that was accepted before, or is a day old, within seconds behind 1,000", () => {
    const proven = new CredentialsBreaker(openMillis)
    proven.accepted(of("genuine"), now - hour)
    for (const known of [{ breaker: proven }, { genuineStoredAt: now - 24 * hour }]) {
      const users = [...others, "genuine"]
      const { millis } = play(users, "genuine", "credentials", 24 * hour, known)
      assert.isAtMost(millis!, 5_000)
    }
  })

  it("find it at once behind 1,000 of one user", () => {
    const same = others.map(() => "one user")
    const { millis, requests } = play([...same, "genuine"], "genuine", "credentials", 24 * hour)
    assert.isAtMost(millis!, 2 * 60_000)
    assert.isAtMost(requests.length, 5)
  })

  it("leave a push service that refuses everybody alone more and more", () => {
    const { requests } = play(others.slice(0, 100), undefined, "credentials", 4 * hour)
    assert.isAtMost(within(requests, 0, 60_000), 60)
    assert.isAtMost(within(requests, 3 * hour, 4 * hour), 620)
    const few = play(["a", "b"], undefined, "credentials", 4 * hour)
    assert.isAtMost(few.requests.length, 50)
  })
})
