// Any request gets a quick and small response in the right form, and never a 5xx.
import fc from "fast-check"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { isObject } from "#basics/json.ts"
import { call } from "../../support/client.ts"
import { anyRequest } from "../../support/hostile/any-request.ts"
import { exchangeRaw, type RawAnswer } from "../../support/hostile/exchange.ts"
import { startNats } from "../../support/nats.ts"
import { type Service, startService } from "../../support/service.ts"

const requests = Number(process.env["ANY_REQUESTS"] ?? 1_200)
const concurrency = 12
/** Ten times what the slowest takes, a dozen of them at once on two busy cores. */
const answerMillisMax = 10_000
/** The API's description has 60 KB; a list of this user has less. */
const answerBytesMax = 512 * 1024

/** What is wrong with the form of an answer, if anything. */
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
  const { code, errno, error } = json
  const isError = code === status && Number.isInteger(errno) && typeof error === "string"
  return isError ? undefined : "not of the form of an error"
}

describe("any request", () => {
  const stack = new AsyncDisposableStack()
  let service: Service

  beforeAll(async () => {
    const nats = stack.use(await startNats())
    const roles = "gateway,projection,fanout,tally"
    service = stack.use(await startService({ natsUrl: nats.url, roles, forgets: true }))
  })
  afterAll(() => stack.disposeAsync())

  const check = async (sent: string): Promise<void> => {
    const origin = { port: service.port, from: "127.0.0.2" }
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
    const { body: api } = await call(service.url, "GET", "/__api__")
    const paths = Object.keys(api.paths)
    const batch = fc.array(anyRequest(paths), { minLength: concurrency, maxLength: concurrency })
    const property = fc.asyncProperty(batch, (many) => Promise.all(many.map(check)).then(() => {}))
    // The reporter of fast-check would print a dozen requests of many KB.
    const asyncReporter = async (run: fc.RunDetails<[Array<string>]>) => {
      const { counterexamplePath, errorInstance, failed, seed } = run
      if (failed) throw new Error(`seed ${seed}, path ${counterexamplePath}: ${errorInstance}`)
    }
    const numRuns = Math.ceil(requests / concurrency)
    await fc.assert(property, { numRuns, endOnFailure: true, asyncReporter })
    assert.isNull(service.process.exitCode)
    // No request changed what the next one sees.
    const { status } = await call(service.url, "GET", "/subscriptions", "somebody")
    assert.equal(status, 200)
  })
})
