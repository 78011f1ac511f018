// The VAPID public keys that browsers subscribe with. main.ts provides them.
import * as Context from "effect/Context"

export class VapidPublicKeys extends Context.Service<
  VapidPublicKeys,
  {
    /** The key of new subscriptions. */
    readonly current: string
    /** All keys that can sign, also former ones: an open page may have read a former key. */
    readonly usable: ReadonlyArray<string>
  }
>()("bellcast/gateway/VapidPublicKeys") {}
