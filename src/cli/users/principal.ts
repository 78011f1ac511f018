// The principal of a user or a group that an operator names by a mail address. Addresses are
// personal data and are never stored: the user id secret makes the id, as the gateway makes it.
import { Effect, Option, Redacted } from "effect"
import { settings } from "#config"
import { principalNames } from "#identity/principals.ts"
import { loadSecrets } from "#secrets/file.ts"
import { checkUseridSecret } from "#secrets/userid-secret.ts"
import { everySetting } from "#settings/every-setting.ts"
import { VerbFailed } from "../nats/nats.ts"

const { dataDir, useridHmacSecret } = settings
const ownSettings = everySetting({ dataDir, useridHmacSecret })

const failed = ({ message }: { readonly message: string }) => new VerbFailed({ message })

const missing =
  "a user with a mail address needs BELLCAST_USERID_HMAC_SECRET here, as the service has it " +
  "(or secrets.json of the embedded server, in BELLCAST_DATA_DIR): only an HMAC of the address " +
  "is stored"

/** The secret from the settings, or from the file beside the embedded server. */
const secretOf = Effect.gen(function* () {
  const own = yield* Effect.mapError(ownSettings, failed)
  if (Option.isSome(own.useridHmacSecret)) return own.useridHmacSecret.value
  const file = yield* Effect.mapError(
    loadSecrets(own.dataDir),
    () => new VerbFailed({ message: missing })
  )
  return Redacted.make(file.useridHmacSecret)
})

/** The principal as it is stored. Fails where the secret is missing or is not the service's. */
export const storedPrincipal = Effect.fnUntraced(function* (principal: string) {
  if (!principal.includes("@") || /:@[0-9a-f]{64}$/.test(principal)) return principal
  const secret = yield* secretOf
  yield* Effect.catchTag(checkUseridSecret(secret), "SecretsFault", (fault) =>
    Effect.fail(failed(fault))
  )
  return principalNames(Redacted.value(secret))(principal)
})
