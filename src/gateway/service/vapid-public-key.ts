// GET /vapid-public-key: the key that a page gives to pushManager.subscribe() as applicationServerKey. The root says it too; this one is small, may be
// kept for minutes, and changes only when the key does.
import { Clock, Effect, Schema } from "effect"
import { type ApiResponse, ok } from "../http/request.ts"
import { expiringIn } from "../http/response-headers.ts"
import type { Operation } from "../operation.ts"
import { VapidPublicKeys } from "../subscriptions/vapid-public-keys.ts"

/** After a rotation pages go on subscribing with the former key for no longer; it is still signed with. */
const cacheSeconds = 300

const PublicKey = Schema.Struct({ vapid_public_key: Schema.String })

/** RFC 9110 section 13.1.2: a list, weak tags count. The tags of this resource are no timestamps. */
const holds = (ifNoneMatch: string, tag: string): boolean =>
  ifNoneMatch.split(",").some((each) => ["*", tag].includes(each.trim().replace(/^W\//, "")))

export const vapidPublicKeyGet: Operation<void> = {
  access: "anyone",
  exposes: ["ETag", "Cache-Control", "Expires"],
  read: () => Effect.void,
  run: Effect.fnUntraced(function* (_, { request }) {
    const { current } = yield* VapidPublicKeys
    const tag = `"${current}"`
    const headers = { ETag: tag, ...expiringIn(cacheSeconds, yield* Clock.currentTimeMillis) }
    if (holds(request.headers["if-none-match"] ?? "", tag))
      return { status: 304, headers, errno: 0 } satisfies ApiResponse
    return ok({ data: { vapid_public_key: current } }, headers)
  }),
  doc: {
    summary: "The VAPID public key that browsers subscribe with (applicationServerKey)",
    responses: { 200: Schema.Struct({ data: PublicKey }), 304: null }
  }
}
