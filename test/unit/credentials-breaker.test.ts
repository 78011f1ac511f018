// The credentials breaker: when it opens, which pushes pass as probes, what closes it.
import { assert, describe, it } from "@effect/vitest"
import { CredentialsBreaker } from "#delivery/push-service/breakers.ts"

const openMillis = 60_000
const now = 1_800_000_000_000
const hour = 60 * 60_000
const of = (user: string, id = "id") => ({ user, subscription: `${user}.${id}` })

const opened = () => {
  const breaker = new CredentialsBreaker(openMillis)
  const refusal = breaker.refused(of("a"), now)
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
    assert.strictEqual(breaker.stateAt(now + 1), "open")
    assert.deepEqual(breaker.refused(of("b"), now + 5), {
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
    for (let i = 0; i < 20; i++) breaker.refused(of(`u${i}`), now)
    assert.isUndefined(breaker.admit(of("b"), now + 2_000))
    assert.deepEqual(breaker.refused(of("b"), now + 2_000), {
      until: now + 2_000 + openMillis,
      opens: false
    })
    assert.strictEqual(breaker.openMillis(now + 2_000), openMillis)
  })

  it("blames one subscription after a 2xx, and our key after 20 users in a row", () => {
    const breaker = new CredentialsBreaker(openMillis)
    breaker.accepted(of("z"), now)
    for (let i = 0; i < 500; i++)
      assert.strictEqual(breaker.refused(of("a", `id${i}`), now), "lone")
    for (let i = 0; i < 18; i++) assert.strictEqual(breaker.refused(of(`u${i}`), now), "lone")
    assert.deepInclude(breaker.refused(of("last"), now) as object, { opens: true })
  })

  it("starts its row anew with every 2xx, and holds a proof for ten minutes", () => {
    const breaker = new CredentialsBreaker(openMillis)
    for (let i = 0; i < 60; i++) {
      if (i % 15 === 0) breaker.accepted(of("z"), now)
      assert.strictEqual(breaker.refused(of(`u${i}`), now), "lone")
    }
    assert.isTrue(breaker.proven(now + 599_999))
    assert.isFalse(breaker.proven(now + 600_000))
    assert.deepInclude(breaker.refused(of("g"), now + 600_000) as object, {
      opens: true
    })
  })

  it("remembers a subscription that was refused alone until it is accepted", () => {
    const breaker = new CredentialsBreaker(openMillis)
    const refused = (user: string, at: number) => breaker.refused(of(user), at)
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

/** The users to whom pushes wait, each with the time of its push. */
type Waiting = ReadonlyArray<{ readonly user: string; readonly at: number }>

const at = (users: ReadonlyArray<string>, millis = 0): Waiting =>
  users.map((user) => ({ user, at: now + millis }))

/**
 * Plays pushes to these users against a push service that refuses all but those to "genuine": each
 * push comes back when the breaker says so. Returns the requests up to the first that is taken, or
 * up to the end, and when that was.
 */
const play = (users: Waiting, endMillis: number) => {
  const breaker = new CredentialsBreaker(openMillis)
  const waiting = users.map(({ at, user }, i) => ({ push: of(user, `id${i}`), at }))
  const requests: Array<number> = []
  while (true) {
    const next = waiting.shift()!
    if (next.at > now + endMillis) return { requests, millis: Number.POSITIVE_INFINITY }
    const held = breaker.admit(next.push, next.at)
    if (held === undefined) {
      requests.push(next.at - now)
      if (next.push.user === "genuine") return { requests, millis: next.at - now }
    }
    const answer = held ?? breaker.refused(next.push, next.at)
    const back = Math.ceil(
      typeof answer === "number" ? answer : answer === "lone" ? next.at + openMillis : answer.until
    )
    assert.isAbove(back, next.at)
    let low = 0
    let high = waiting.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (waiting[middle]!.at <= back) low = middle + 1
      else high = middle
    }
    waiting.splice(low, 0, { push: next.push, at: back })
  }
}

const within = (requests: ReadonlyArray<number>, from: number, to: number) =>
  requests.filter((at) => at >= from && at < to).length

describe("probes of an open credentials breaker", () => {
  const madeUp = (count: number) => Array.from({ length: count }, (_, i) => `u${i}`)

  it.each([
    [120, 5_000],
    [300, 15_000],
    [1_000, 60_000],
    [10_000, 6 * 60_000]
  ])("find one genuine user behind %i made-up ones", (count, bound) => {
    const { millis, requests } = play(at([...madeUp(count), "genuine"]), 24 * hour)
    assert.isAtMost(millis, bound)
    assert.isAtMost(requests.length, count + 1)
  })

  it.each([
    [1_000, 20 * 60_000],
    [100, 24 * hour]
  ])("find it when it comes while %i are refused, %i ms after the first", (count, comes) => {
    const { millis } = play([...at(madeUp(count)), ...at(["genuine"], comes)], 48 * hour)
    assert.isAtMost(millis - comes, 60_000)
  })

  it("find it behind 1,000 others who come a day after the first", () => {
    const users = [...at(["first"]), ...at([...madeUp(1_000), "genuine"], 24 * hour)]
    assert.isAtMost(play(users, 48 * hour).millis - 24 * hour, 60_000)
  })

  it("find it at once behind 1,000 of one user", () => {
    const same = madeUp(1_000).map(() => "one user")
    const { millis, requests } = play(at([...same, "genuine"]), 24 * hour)
    assert.isAtMost(millis, 1_000)
    assert.isAtMost(requests.length, 5)
  })

  it("find it although more wait than have a turn", () => {
    const { millis } = play(at([...madeUp(10_500), "genuine"]), hour)
    assert.isAtMost(millis, 15 * 60_000)
  })

  it("leave a push service that refuses everybody alone more and more", () => {
    const { requests } = play(at(madeUp(100)), 4 * hour)
    assert.isAtMost(within(requests, 0, 60_000), 100)
    assert.isAtMost(within(requests, 3 * hour, 4 * hour), 620)
    const few = play(at(["a", "b"]), 4 * hour)
    assert.isAtMost(few.requests.length, 50)
    const many = play(at(madeUp(2_000)), 2 * hour)
    assert.isAtMost(within(many.requests, hour, 2 * hour), 8_000)
  })

  it("go out one after the other to users who come back after an hour without a push", () => {
    const late = at(madeUp(1_000), hour)
    const { requests } = play([...at(madeUp(1_000)).slice(0, 1), ...late], 2 * hour)
    assert.isAtMost(within(requests, hour, hour + 1_000), 30)
  })
})
