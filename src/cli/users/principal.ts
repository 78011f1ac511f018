// The principal of a user or a group that an operator names by a mail address. Addresses are
// personal data and are never stored: the user id secret makes the id, as the gateway makes it.
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { settings } from "#config"
import { policyOf } from "#domain/publisher.ts"
import { principalNames } from "#identity/principals.ts"
import { identitySettings, kindOf } from "#identity/settings.ts"
import { loadSecrets } from "#secrets/file.ts"
import { checkUseridSecret } from "#secrets/userid-adoption.ts"
import { everySetting } from "#settings/every-setting.ts"
import { failed, failedBy } from "../terminal/failed.ts"

const { dataDir, useridHmacSecret } = settings
const ownSettings = everySetting({ dataDir, useridHmacSecret })

const missing =
  "a user with a mail address needs BELLCAST_USERID_HMAC_SECRET here, as the service has it " +
  "(or secrets.json of the embedded server, in BELLCAST_DATA_DIR): only an HMAC of the address " +
  "is stored"

/** The secret from the settings, or from the file beside the embedded server. */
const secretOf = Effect.gen(function* () {
  const own = yield* Effect.mapError(ownSettings, failedBy)
  if (Option.isSome(own.useridHmacSecret)) return own.useridHmacSecret.value
  const file = yield* Effect.mapError(loadSecrets(own.dataDir), () => failed(missing))
  return Redacted.make(file.useridHmacSecret)
})

/**
 * Why nobody can have a principal: its policy is none of ours, nor one that the settings name. The
 * settings may stand elsewhere; then only modules of an operator are unknown here.
 */
export const policyFault = Effect.gen(function* () {
  const { authPolicies } = yield* Effect.mapError(everySetting(identitySettings), failedBy)
  return (principal: string): string | undefined => {
    const policy = policyOf(principal)
    if (policy === undefined || authPolicies.some(({ name }) => name === policy)) return undefined
    if (kindOf(policy) === undefined)
      return (
        `there is no policy ${policy}; if it is a module of yours, BELLCAST_AUTH_POLICIES must ` +
        "be set here, too"
      )
    return authPolicies.length === 0
      ? undefined
      : `the policy ${policy} is off: BELLCAST_AUTH_POLICIES does not name it`
  }
})

/** The principal as it is stored. Fails where the secret is missing or is not the service's. */
export const storedPrincipal = Effect.fnUntraced(function* (principal: string) {
  if (!principal.includes("@") || /:@[0-9a-f]{64}$/.test(principal)) return principal
  const secret = yield* secretOf
  yield* Effect.catchTag(checkUseridSecret(secret), "SecretsFault", (fault) =>
    Effect.fail(failedBy(fault))
  )
  return principalNames(Redacted.value(secret))(principal)
})
