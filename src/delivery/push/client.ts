// POST to push services: reused connections per origin, a bound on every wait, and responses read
// no further than needed. Redirects are not followed.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { checkedLookup } from "#basics/address-filter.ts"
import { makeLruCache } from "#basics/lru-cache.ts"
import { Settings } from "#config"
import { limitsOf, type Request } from "./transport/exchange.ts"
import { Peer } from "./transport/peer.ts"
import type { PushResponse } from "./transport/response.ts"

/** Push services with connections; with the default allow-list there are a handful of hosts. */
const originsMax = 1_000

export class PushClient extends Context.Service<
  PushClient,
  {
    /** Never fails: an error is a response too. */
    readonly post: (request: Request & { readonly origin: string }) => Effect.Effect<PushResponse>
  }
>()("bellcast/delivery/PushClient") {
  static readonly layer = Layer.effect(
    PushClient,
    Effect.gen(function* () {
      const { allowLoopbackEndpoints, http2, pushesUnderWayMax, pushTimeoutMillis } =
        yield* Settings
      const peers = makeLruCache<Peer>(originsMax, (peer) => peer.close())
      const options = {
        http2,
        connectionsMax: pushesUnderWayMax,
        limits: limitsOf(pushTimeoutMillis),
        lookup: checkedLookup(allowLoopbackEndpoints)
      }
      const peerOf = (origin: string) => peers.of(origin, () => new Peer(origin, options))
      yield* Effect.addFinalizer(() =>
        Effect.promise(() => Promise.all([...peers.all()].map((peer) => peer.destroy())))
      )
      const post = ({ origin, ...request }: Request & { readonly origin: string }) =>
        Effect.callback<PushResponse>((resume) =>
          peerOf(origin).post(request, (response) => resume(Effect.succeed(response)))
        )
      return PushClient.of({ post })
    })
  )
}
