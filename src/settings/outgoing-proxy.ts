// The proxy for outgoing TLS. Its settings are those of the environment that other programs have,
// too, and no settings of the service.
import * as Context from "effect/Context"
import { type HttpProxy, proxyOf } from "#basics/proxy.ts"

/** The proxy of this process; undefined: none. */
export const OutgoingProxy: Context.Reference<HttpProxy | undefined> = Context.Reference<
  HttpProxy | undefined
>("bellcast/settings/OutgoingProxy", { defaultValue: () => proxyOf(process.env) })
