// The policies that come with Bellcast: the settings of each, and how it is made from them.
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Settings } from "#config"
import type { Buckets } from "#nats/kv/bucket.ts"
import {
  everySetting,
  namesOf,
  readEvery,
  type SettingsError,
  type Table,
  type Values
} from "#settings/every-setting.ts"
import { basicauth } from "./policies/basicauth.ts"
import { oauth, oauthFaults, oauthSettings } from "./policies/oauth.ts"
import { openid, openidSettings } from "./policies/openid.ts"
import { portier, portierFaults, portierSettings } from "./policies/portier.ts"
import { proxy, proxySettings } from "./policies/proxy.ts"
import { signed, signedFaults, signedSettings } from "./policies/signed.ts"
import { token } from "./policies/token.ts"
import type { Policy } from "./policy.ts"
import { useridSecret } from "./principals.ts"
import { type IdentitySettings, type PolicyKind, policyKinds, settingPrefix } from "./settings.ts"
import type { Failures } from "./verification/failures.ts"
import type { Verifications } from "./verification/verifications.ts"

/** The services that a policy may use. */
export type PolicyNeeds =
  | Settings
  | IdentitySettings
  | Failures
  | Verifications
  | Buckets
  | Scope.Scope

export interface Kind {
  /** The settings of a policy, whose names begin with `prefix`. */
  readonly settings: (prefix: string) => Table
  /** One line about each setting of a policy that cannot be used. */
  readonly faults: (name: string) => Effect.Effect<ReadonlyArray<string>>
  readonly make: (name: string) => Effect.Effect<Policy, SettingsError, PolicyNeeds>
}

/** `contradictions`: of settings that are each valid, one line each. */
const kind = <T extends Table>(
  settings: (prefix: string) => T,
  make: (name: string, values: Values<T>) => Effect.Effect<Policy, SettingsError, PolicyNeeds>,
  contradictions: (name: string, values: Values<T>) => ReadonlyArray<string> = () => []
): Kind => ({
  settings,
  faults: (name) =>
    Effect.map(readEvery(settings(settingPrefix(name))), ({ faults, values }) =>
      faults.length > 0 ? faults : contradictions(name, values as Values<T>)
    ),
  make: (name) =>
    Effect.flatMap(everySetting(settings(settingPrefix(name))), (values) => make(name, values))
})

const warnOfBasic =
  "basic auth is on: any user name and password make a user, do not expose this to the internet"

export const kinds: Readonly<Record<PolicyKind, Kind>> = {
  basicauth: kind(
    () => ({}),
    (name) =>
      Effect.gen(function* () {
        yield* Effect.logWarning(warnOfBasic)
        return basicauth(name, yield* useridSecret)
      })
  ),
  oauth: kind(oauthSettings, oauth, oauthFaults),
  openid: kind(openidSettings, openid),
  signed: kind(signedSettings, signed, signedFaults),
  proxy: kind(proxySettings, proxy),
  token: kind(() => ({}), token),
  portier: kind(portierSettings, portier, portierFaults)
}

/** The policy that a setting of this name belongs to: `oauth-staff` for OAUTH_STAFF_AUDIENCE. */
export const policyOfSetting = (name: string): string | undefined => {
  for (const kind of policyKinds) {
    const prefix = settingPrefix(kind)
    for (const own of namesOf(kinds[kind].settings(prefix))) {
      const form = new RegExp(`^${prefix}((?:_[A-Z0-9]+)*)${own.slice(prefix.length)}$`)
      const [, suffix] = form.exec(name) ?? []
      if (suffix !== undefined) return kind + suffix.toLowerCase().replaceAll("_", "-")
    }
  }
  return undefined
}
