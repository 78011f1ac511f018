// The VAPID public keys that browsers subscribe with; main.ts says which.
import { Context } from "effect"

export class VapidPublicKeys extends Context.Service<
  VapidPublicKeys,
  {
    /** The one that new subscriptions are made with. */
    readonly current: string
    /** All that pushes are signed with: a page may still be open that read a former one. */
    readonly usable: ReadonlyArray<string>
  }
>()("bellcast/gateway/VapidPublicKeys") {}
