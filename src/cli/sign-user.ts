// `bellcast sign-user ID`: signs a user's id for the policy `signed`, as the backend of a site
// does; with `--console`, as a link to the console that logs this user in.
import { createHmac, randomUUID } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { gatewaySettings } from "#gateway/settings.ts"
import { linkLifeSeconds } from "#identity/login/links.ts"
import { lifeMillisMax, secretsOf, signedSettings } from "#identity/policies/signed.ts"
import { groupsMax, usableGroups, userFault } from "#identity/principals.ts"
import { kindOf, settingPrefix } from "#identity/settings.ts"
import { secretBytesMin } from "#settings/values.ts"
import { argument, named, onOff, several, spanFlag, valuesOf } from "./terminal/input.ts"
import { failed, noted } from "./terminal/output.ts"

/** The first secret, and the first audience, of a policy. */
const signerOf = Effect.fnUntraced(function* (policy: string) {
  if (kindOf(policy) !== "signed")
    return yield* failed("--policy: Expected signed, or a policy such as signed-shop")
  const prefix = settingPrefix(policy)
  const { audience, secrets } = yield* valuesOf(signedSettings(prefix))
  const [secret] = secretsOf(secrets)
  if (secret === undefined)
    return yield* failed(
      `${prefix}_SECRETS is not set here: a user is signed with its first secret. ` +
        "Bellcast cannot sign with public keys: sign where the private key is"
    )
  if (Buffer.byteLength(secret) < secretBytesMin)
    return yield* failed(`${prefix}_SECRETS: Expected at least ${secretBytesMin} bytes for each`)
  return { secret, audience: audience[0]! }
})

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url")

interface Given {
  readonly id: string
  /** In milliseconds. */
  readonly expires: Option.Option<number>
  readonly policy: string
  readonly groups: ReadonlyArray<string>
  /** Whether to print a link to the console. */
  readonly console: boolean
}

const lifeMillisDefault = 3_600_000
const linkMillisMax = linkLifeSeconds * 1_000

const sign = Effect.fnUntraced(function* (given: Given) {
  const { groups, id, policy } = given
  const expires = Option.getOrElse(given.expires, () =>
    given.console ? linkMillisMax : lifeMillisDefault
  )
  if (given.console && expires > linkMillisMax)
    return yield* failed(`--expires: Expected at most ${linkLifeSeconds}s for a link (--console)`)
  if (expires > lifeMillisMax) return yield* failed("--expires: Expected at most 24h")
  const fault = userFault(id)
  if (fault !== undefined) return yield* failed(`the id ${fault}`)
  if (groups.length > groupsMax)
    return yield* failed(`--group: Expected at most ${groupsMax}, got ${groups.length}`)
  const unusable = groups.find((group) => usableGroups([group]).length === 0)
  if (unusable !== undefined)
    return yield* failed(
      `--group: ${unusable} can be no group: at most 200 bytes, without blanks, commas, double ` +
        "quotes and backslashes"
    )
  const { audience, secret } = yield* signerOf(policy)
  const page = given.console ? yield* consolePage : ""
  const now = yield* Clock.currentTimeMillis
  const iat = Math.floor(now / 1000)
  const exp = Math.floor((now + expires) / 1000)
  const claims = {
    sub: id,
    aud: audience,
    exp,
    ...(groups.length > 0 && { groups }),
    ...(given.console && { iat, jti: randomUUID() })
  }
  const text = `${part({ alg: "HS256", typ: "JWT" })}.${part(claims)}`
  const signature = createHmac("sha256", secret).update(text).digest("base64url")
  yield* Console.log(`${page}${text}.${signature}`)
})

/** The console's page, up to the token in its fragment. */
const consolePage = Effect.gen(function* () {
  const { consoleOrigin } = yield* valuesOf({ consoleOrigin: gatewaySettings.consoleOrigin })
  if (Option.isNone(consoleOrigin))
    return yield* failed(
      "BELLCAST_CONSOLE_ORIGIN is not set here: a link leads to the console at this origin"
    )
  return `${consoleOrigin.value}/v1/console/#login=`
})

const flags = {
  id: argument("id", "The user's id at the site"),
  expires: spanFlag("expires", "How long it is valid: at most 24h, with --console 60s").pipe(
    Flag.optional
  ),
  policy: named("policy", "POLICY").pipe(
    Flag.withDescription("The policy whose settings are used"),
    Flag.withDefault("signed")
  ),
  groups: several(named("group", "GROUP"), "A group of the user, of grants to group:signed:GROUP"),
  console: onOff("console", "Print a link that logs the user in at the console, once, for a minute")
}

/** The verb. */
export const signUserCommand = Command.make("sign-user", flags, (given) =>
  sign(given).pipe(noted)
).pipe(Command.withDescription("Sign a user's id for the policy signed, by hand"))
