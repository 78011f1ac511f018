// A request that was made to be expensive costs little, and holds up nobody else's. Any request
// gets a quick and small response in the right form, and never a 5xx.
import fc from "fast-check"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { isObject } from "#basics/json.ts"
import { makeReceiverKeys } from "#cli/listen/push-receiver.ts"
import { call } from "../../support/client.ts"
import { anyRequest } from "../../support/hostile/any-request.ts"
import { exchangeRaw, type RawAnswer } from "../../support/hostile/exchange.ts"
import { type Exchange, Honest } from "../../support/hostile/honest.ts"
import { useService } from "../../support/use-service.ts"
import { UserAgent } from "../../support/user-agent.ts"
import { idOf } from "../../support/users.ts"

/** Ten times what the slowest of these requests took on two cores with five times their load. */
const requestMillisMax = 20_000
/** Ten times what another client's request took then; the old server took up to minutes. */
const besideMillisMax = 3_500
const subscriptions = 50

const shared = useService({
  roles: "gateway,projection,fanout,tally",
  forgets: true,
  env: { BELLCAST_USER_WRITE_PRINCIPALS: `${idOf("hostile")},${idOf("any")}` }
})

describe("an expensive request", () => {
  const stack = new AsyncDisposableStack()
  let hostile: Honest
  let other: Honest

  beforeAll(() => {
    const { service } = shared
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
      assert.include([200, 202, 400, 413, 431], status, text.slice(0, 300))
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

  it("may name 1,000 users, and 100 channels that match all of them", async () => {
    const users = Array.from({ length: 1_000 }, (_, n) => idOf(`user${n}`))
    const channels = Array.from({ length: 100 }, (_, n) => `${"c".repeat(100)}${n}`)
    const direct = (to: object, more = {}) => ({
      method: "POST",
      path: "/broadcasts",
      body: { data: { n: 1 }, to, ...more }
    })
    await assertCheap(
      direct({ users, channels, except_users: users.slice(0, 900) }),
      direct({ users, channels }, { dry_run: true }),
      direct({ users: users.map(() => users[0]) }),
      direct({ users: [...users, ...users] }),
      batch(...channels.slice(0, 25).map((channel) => `/channels/${channel}/members`))
    )
  })

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

const requests = Number(process.env["ANY_REQUESTS"] ?? 1_200)
const concurrency = 12
/** Ten times what the slowest takes, a dozen of them at once on two busy cores. */
const answerMillisMax = 10_000
/** The API's description has 60 KB; a list of this user has less. */
const answerBytesMax = 512 * 1024

/** Names a fault in the form of a response; undefined: the form is right. */
const faultOf = ({ headers, status, text }: RawAnswer, isHead: boolean): string | undefined => {
  const isBare = status === 204 || status === 304
  if (text === "" && (isBare || isHead)) return undefined
  // A request that is no HTTP, or has too long a head, is refused before its method counts.
  if (isBare || (isHead && status !== 400 && status !== 431)) return "a body"
  if (headers["content-type"]?.startsWith("text/") && status === 200) return undefined
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return "no JSON"
  }
  if (status < 400) return undefined
  if (!isObject(json)) return "no object"
  const { code, errno, error_code } = json
  const isError = code === status && Number.isInteger(errno) && typeof error_code === "string"
  return isError ? undefined : "not of the form of an error"
}

/** A secret that renews a subscription, one that is spent, and one of nobody. */
const secretsOf = async (url: string): Promise<ReadonlyArray<string>> => {
  const dataOf = (name: string) => new UserAgent(`http://127.0.0.1:1/${name}`, {}).subscription
  const post = async (path: string, body: object) => {
    const answer = await call(url, "POST", path, "victim", body, { prefer: "renewal" })
    assert.equal(answer.status, 201)
    return answer.body.renewal as string
  }
  const spent = await post("/subscriptions", { data: dataOf("first") })
  const valid = await post("/subscriptions/replace", { renewal: spent, data: dataOf("second") })
  return [valid, spent, valid.replace(/.{8}$/, "AAAAAAAA")]
}

describe("any request", () => {
  const check = async (sent: string): Promise<void> => {
    const origin = { port: shared.service.port, from: "127.0.0.2" }
    const answer = await exchangeRaw(origin, Buffer.from(sent, "latin1"), answerMillisMax)
    const { bytes, millis, status, text } = answer
    const about = `${sent.slice(0, 1_000)}\n-> ${status}, ${bytes} bytes: ${text.slice(0, 500)}`
    assert.isTrue(status >= 200 && status < 500, about)
    assert.isBelow(millis, answerMillisMax, about)
    assert.isBelow(bytes, answerBytesMax, about)
    assert.isUndefined(faultOf(answer, sent.startsWith("HEAD ")), about)
  }

  it(`is answered soon, small and in the right form (${requests} of them)`, {
    timeout: 60_000 + requests * 40
  }, async () => {
    const { service } = shared
    const { body: api } = await call(service.url, "GET", "/__api__")
    const paths = Object.keys(api.paths)
    const secrets = await secretsOf(service.url)
    const batch = fc.array(anyRequest(paths, secrets), {
      minLength: concurrency,
      maxLength: concurrency
    })
    const property = fc.asyncProperty(batch, (many) => Promise.all(many.map(check)).then(() => {}))
    // The reporter of fast-check would print a dozen requests of many KB.
    const asyncReporter = async (run: fc.RunDetails<[Array<string>]>) => {
      const { counterexamplePath, errorInstance, failed, seed } = run
      if (failed) throw new Error(`seed ${seed}, path ${counterexamplePath}: ${errorInstance}`)
    }
    const numRuns = Math.ceil(requests / concurrency)
    await fc.assert(property, { numRuns, endOnFailure: true, asyncReporter })
    assert.isNull(service.process.exitCode)
    // A secret renews for whoever has it, and makes no second browser.
    const { body: list } = await call(service.url, "GET", "/subscriptions", "victim")
    assert.lengthOf(list.data, 1)
    // No request changed what the next one sees.
    const { status } = await call(service.url, "GET", "/subscriptions", "somebody")
    assert.equal(status, 200)
  })
})
