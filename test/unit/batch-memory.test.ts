// A batch says of entries whose responses have no room that they may come again.
import { Effect, Layer } from "effect"
import { assert, it } from "vitest"
import { Settings } from "#config"
import { batchPost } from "#gateway/batch.ts"
import type { ApiRequest, Call } from "#gateway/http/request.ts"
import { jsonResponse } from "#gateway/http/response.ts"
import { Gateway } from "#gateway/operation.ts"

const entryOf = (method: string) => ({
  target: `/v1/${method}`,
  method,
  headers: {},
  body: () => undefined
})

/** Status, error and Retry-After of each entry. `bytes`: of each response. */
const run = async (
  methods: ReadonlyArray<string>,
  bytes: number,
  reserveResponseBytes: ApiRequest["reserveResponseBytes"]
) => {
  const handleRequest = () => Effect.succeed(jsonResponse(JSON.stringify("x".repeat(bytes - 2))))
  const services = Layer.mergeAll(
    Layer.succeed(Gateway, { handleRequest, endpoints: [] }),
    Layer.succeed(Settings, { retryAfterSeconds: 7 } as Settings["Service"])
  )
  const call = { request: { headers: {}, reserveResponseBytes } } as unknown as Call
  const batch = batchPost.run(methods.map(entryOf), call) as ReturnType<typeof Effect.succeed>
  const response = await Effect.runPromise(Effect.provide(batch, services) as never)
  const { responses } = JSON.parse((response as { jsonText: string }).jsonText)
  return (responses as ReadonlyArray<Record<string, Record<string, unknown>>>).map(
    ({ body, headers, status }) => [status, body!["error_code"], headers!["Retry-After"]]
  )
}

it.for([
  ["too-many-at-once", 429],
  ["unavailable", 503]
] as const)("a batch without memory says %s, and when to come again", async ([code, status]) => {
  let left = 1
  const reserve = () => (left-- > 0 ? undefined : code)
  const shown = [200, undefined, undefined]
  const refused = [status, code, "7"]
  assert.deepEqual(await run(["GET", "GET", "PUT"], 100, reserve), [shown, refused, refused])
  left = 0
  // A write that was made is reported.
  assert.deepEqual(await run(["PUT", "GET"], 100, reserve), [shown, refused])
})

it("a batch whose own responses are too large does not say that it would fit later", async () => {
  const tooLarge = [413, "response-too-large", undefined]
  const all = await run(["GET", "GET", "GET"], 3 * 1024 ** 2, () => undefined)
  assert.deepEqual(all, [[200, undefined, undefined], tooLarge, tooLarge])
})
