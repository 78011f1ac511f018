// A request that was made to be expensive costs little, and holds up nobody else's.
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { makeReceiverKeys } from "#cli/listen/push-receiver.ts"
import { type Exchange, Honest } from "../../support/hostile/honest.ts"
import { startNats } from "../../support/nats.ts"
import { type Service, startService } from "../../support/service.ts"

/** Ten times what the slowest of these requests took on two cores with five times their load. */
const requestMillisMax = 20_000
/** Ten times what another client's request took then; the old server took up to minutes. */
const besideMillisMax = 3_500
const subscriptions = 50

describe("an expensive request", () => {
  const stack = new AsyncDisposableStack()
  let service: Service
  let hostile: Honest
  let other: Honest

  beforeAll(async () => {
    const nats = stack.use(await startNats())
    const roles = "gateway,projection,fanout,tally"
    service = stack.use(await startService({ natsUrl: nats.url, roles }))
    hostile = new Honest({ url: service.url, endpoints: [] })
    other = new Honest({ url: service.url, endpoints: [] })
    stack.defer(() => hostile.close())
    stack.defer(() => other.close())
  })
  afterAll(() => stack.disposeAsync())

  /** Sends a request; meanwhile another client asks for the heartbeat again and again. */
  const cost = async (ask: Parameters<Honest["send"]>[0]) => {
    let answer: Exchange | undefined
    const answered = hostile.send({ user: "hostile", ...ask }).then((exchange) => {
      answer = exchange
    })
    let besideMillis = 0
    do {
      const { millis, status } = await other.send({ method: "GET", path: "/__lbheartbeat__" })
      assert.equal(status, 200)
      besideMillis = Math.max(besideMillis, millis)
    } while (answer === undefined)
    await answered
    return { ...answer, besideMillis }
  }

  const assertCheap = async (...asks: ReadonlyArray<Parameters<Honest["send"]>[0]>) => {
    for (const ask of asks) {
      const { besideMillis, millis, status, text } = await cost(ask)
      assert.include([200, 400, 413, 431], status, text.slice(0, 300))
      assert.isBelow(millis, requestMillisMax)
      assert.isBelow(besideMillis, besideMillisMax)
    }
  }

  const batch = (...paths: ReadonlyArray<string>) => ({
    method: "POST",
    path: "/batch",
    body: { requests: paths.map((path) => ({ path })) }
  })

  it.for([20_000, 60_000, 190_000])("may have %i names in the query of a batch's entry", (names) =>
    assertCheap(
      batch(`/subscriptions?${"a&".repeat(names)}`),
      batch(
        `/subscriptions?${Array.from({ length: names / 3 }, (_, n) => n.toString(36)).join("&")}`
      )
    )
  )

  it("may have as many names as fit into a batch of 25", () =>
    assertCheap(batch(...Array.from({ length: 25 }, () => `/subscriptions?${"a&".repeat(7_000)}`))))

  describe("of a user with as many and as wide subscriptions as fit", () => {
    /** Stores subscriptions with `names` members in `m`; whether the service takes them. */
    const store = async (names: number): Promise<boolean> => {
      const m = Object.fromEntries(Array.from({ length: names }, (_, n) => [n, 0]))
      const { auth, p256dh } = makeReceiverKeys()
      for (let n = 0; n < subscriptions; n++) {
        const data = { endpoint: `http://127.0.0.1:1/${n}`, keys: { auth, p256dh }, m }
        const ask = { method: "POST", path: "/subscriptions", user: "hostile", body: { data } }
        const { status } = await hostile.send(ask)
        if (status !== 201) return false
      }
      return true
    }

    beforeAll(async () => {
      const widths = [1_900, 1_000, 400]
      for (const width of widths) if (await store(width)) return
      throw new Error("no subscription was stored")
    })

    const listed = (query: string): string => query.slice(0, 15_000)
    const many = (value: (n: number) => string, separator = ",") =>
      Array.from({ length: 3_000 }, (_, n) => value(n)).join(separator)
    const get = (query: string) => ({ method: "GET", path: `/subscriptions?${listed(query)}` })

    it("may name 3,000 fields", () =>
      assertCheap(
        get(`_fields=${many((n) => `m.${n}`)}`),
        get(`_fields=${many(() => "m")}`),
        get(`_fields=${many((n) => `m.${".a".repeat(n)}`)}`),
        batch(`/subscriptions?_fields=${many((n) => `m.${n}`)}`)
      ))

    it("may name 3,000 sort keys", () =>
      assertCheap(get(`_sort=${many((n) => `-m.${n}`)}`), get(`_sort=${many(() => "m")}`)))

    it("may filter by 3,000 names or values", () =>
      assertCheap(
        get(many((n) => `m.${n}=0`, "&")),
        get(`in_m.0=${many((n) => `${n}`)}`),
        get(`contains_any_m=${many((n) => `${n}`)}`),
        get(`like_m=${"*a".repeat(5_000)}`),
        get(`m${".a".repeat(7_000)}=1`)
      ))
  })
})
