// The VAPID public keys that browsers subscribe with, which main.ts provides, and the endpoint of
// the current one.
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { isTagIn } from "./http/preconditions.ts"
import { type ApiResponse, ok } from "./http/response.ts"
import { expiringIn } from "./http/response-headers.ts"
import { operation } from "./operation.ts"

export class VapidPublicKeys extends Context.Service<
  VapidPublicKeys,
  {
    /** The key of new subscriptions. */
    readonly current: string
    /** All keys that can sign, also former ones: an open page may have read a former key. */
    readonly usable: ReadonlyArray<string>
  }
>()("bellcast/gateway/VapidPublicKeys") {}

/**
 * After a rotation, pages use the former key for at most this time. Bellcast still signs with it.
 */
const cacheSeconds = 300

const PublicKey = Schema.Struct({ vapid_public_key: Schema.String })

/**
 * GET /vapid-public-key: the applicationServerKey for pushManager.subscribe(). The root resource
 * has the key, too; this response is small and cacheable.
 */
export const vapidPublicKeyGet = operation({
  access: "anyone",
  exposes: ["ETag", "Cache-Control", "Expires"],
  run: Effect.fnUntraced(function* (_, { request }) {
    const { current } = yield* VapidPublicKeys
    const tag = `"${current}"`
    const headers = { ETag: tag, ...expiringIn(cacheSeconds, yield* Clock.currentTimeMillis) }
    if (isTagIn(request.headers["if-none-match"], tag))
      return { status: 304, headers } satisfies ApiResponse
    return ok({ data: { vapid_public_key: current } }, headers)
  }),
  doc: {
    summary: "The VAPID public key that browsers subscribe with (applicationServerKey)",
    parameters: ["ifNoneMatch"],
    responses: { 200: Schema.Struct({ data: PublicKey }), 304: null }
  }
})
