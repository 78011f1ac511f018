// The VAPID public key that browsers subscribe with; main.ts says which.
import { Context } from "effect"

export class PublicKey extends Context.Service<PublicKey, { readonly vapidPublicKey: string }>()("bellcast/gateway/PublicKey") {}
