// Which push services a process remembers, while clients make up hosts.
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { makePlaces } from "#delivery/jobs/retry.ts"
import { makeOrigins, type Origin, provenMax, unprovenMax } from "#delivery/push-service/origins.ts"
import { PushService } from "#delivery/push-service/push-service.ts"
import { pushesAt } from "#test/judged-pushes.ts"

const hour = 60 * 60_000
/** Origins below `*.genuine.org` and `*.other.org`. */
const patternOf = (host: string) => `*.${host.split(".").slice(1).join(".")}`
const madeUp = (i: number, domain = "genuine.org") => `https://x${i}.${domain}`
const tableOf = () => {
  const origins = makeOrigins(patternOf)
  const forgotten: Array<string> = []
  const table = origins.table(
    (origin) => ({ origin }),
    ({ origin }) => void forgotten.push(origin.name)
  )
  const use = (name: string): Origin => table.of(name).origin
  return { origins, table, forgotten, use }
}

describe("what a process remembers of push services", () => {
  it("is made once for each origin and table, and forgotten in the order of use", () => {
    const { forgotten, origins, use } = tableOf()
    const second = origins.table(() => ({}))
    assert.strictEqual(use(madeUp(0)), use(madeUp(0)))
    assert.strictEqual(second.of(madeUp(0)), second.of(madeUp(0)))
    for (let i = 1; i < unprovenMax; i++) use(madeUp(i))
    use(madeUp(0))
    use(madeUp(unprovenMax))
    assert.deepEqual(forgotten, [madeUp(1)])
  })

  it("outlives any number of made-up hosts, once the origin accepted a push", () => {
    const { forgotten, table, use } = tableOf()
    const genuine = use("https://a.genuine.org")
    genuine.accepted(0)
    for (let i = 0; i < 5_000; i++) use(madeUp(i))
    assert.strictEqual(use("https://a.genuine.org"), genuine)
    assert.notInclude(forgotten, "https://a.genuine.org")
    assert.lengthOf([...table.all()], unprovenMax + 1)
  })

  it("outlives hosts of another pattern, whether or not the origin accepted a push", () => {
    const { use } = tableOf()
    const genuine = use("https://a.genuine.org")
    for (let i = 0; i < 5_000; i++) use(madeUp(i, "other.org")).accepted(0)
    assert.strictEqual(use("https://a.genuine.org"), genuine)
  })

  it("is kept by an origin that accepts a push while it is being forgotten", () => {
    const { use } = tableOf()
    const genuine = use("https://a.genuine.org")
    for (let i = 0; i <= unprovenMax; i++) use(madeUp(i))
    assert.notStrictEqual(use("https://a.genuine.org"), genuine)
    genuine.accepted(0)
    assert.strictEqual(use("https://a.genuine.org"), genuine)
  })

  it("has a bound even if every host accepts, and those that came first stay", () => {
    const { table, use } = tableOf()
    for (let i = 0; i < 3 * provenMax; i++) use(madeUp(i)).accepted(i)
    assert.isTrue(use(madeUp(0)).isProven)
    assert.isFalse(use(madeUp(provenMax)).isProven)
    assert.lengthOf([...table.all()], provenMax + unprovenMax)
  })

  it("makes room for an origin that accepts, once others accepted nothing for an hour", () => {
    const { forgotten, use } = tableOf()
    for (let i = 0; i < provenMax; i++) use(madeUp(i)).accepted(0)
    use(madeUp(7)).accepted(hour)
    const genuine = use("https://a.genuine.org")
    genuine.accepted(hour - 1)
    assert.isFalse(genuine.isProven)
    genuine.accepted(2 * hour - 1)
    assert.isTrue(genuine.isProven)
    assert.isTrue(use(madeUp(7)).isProven)
    assert.lengthOf(forgotten, provenMax - 1)
  })

  it("gives each host a share that responds, and made-up ones two of a pattern together", () => {
    const { origins, use } = tableOf()
    use("https://a.genuine.org").accepted(0)
    use("https://b.genuine.org").noteResponse(true)
    use(madeUp(0)).noteResponse(false)
    use(madeUp(1))
    const own = (name: string) => ({ name, isOwn: true })
    assert.deepEqual(origins.shareOf("a.genuine.org"), own("a.genuine.org"))
    assert.deepEqual(origins.shareOf("b.genuine.org"), own("b.genuine.org"))
    const untried = { name: "new *.genuine.org", isOwn: false }
    assert.deepEqual(origins.shareOf("x0.genuine.org"), {
      ...untried,
      name: "silent *.genuine.org"
    })
    assert.deepEqual(origins.shareOf("x1.genuine.org"), untried)
    assert.deepEqual(origins.shareOf("never-seen.genuine.org"), untried)
  })
})

describe("retries to made-up hosts that do not respond", () => {
  const options = { pushesUnderWayMax: 1, retryBaseMillis: 10, breakerOpenMillis: 10 }
  const push = pushesAt(0)("someone")

  it.effect("leave places to hosts of their pattern that were not tried, or that respond", () =>
    Effect.gen(function* () {
      const { origins, use } = tableOf()
      const placed = makePlaces()
      const retry = (host: string) =>
        placed(origins.shareOf(host), Effect.as(Effect.yieldNow, "sent"), "full")
      const pushServiceAt = (name: string) =>
        new PushService(name, "key", {
          ...{ ...options, hasHeadroom: () => true },
          remembered: use(name)
        })
      for (let i = 0; i < 100; i++) pushServiceAt(madeUp(i)).failed("timeout", push, 0)
      for (let i = 0; i < 100; i++)
        yield* Effect.forkChild(placed(origins.shareOf(`x${i}.genuine.org`), Effect.never, "full"))
      yield* Effect.yieldNow
      assert.strictEqual(yield* retry("x0.genuine.org"), "full")
      assert.strictEqual(yield* retry("a.genuine.org"), "sent")
      const refusing = pushServiceAt("https://a.genuine.org")
      refusing.judge({ kind: "failed", reason: "server-error" }, push, 503, 0)
      for (let i = 0; i < 40; i++)
        yield* Effect.forkChild(placed(origins.shareOf("a.genuine.org"), Effect.never, "full"))
      yield* Effect.yieldNow
      assert.strictEqual(yield* retry("a.genuine.org"), "sent")
    })
  )
})
