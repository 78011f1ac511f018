// The users and groups whom verbs are given: ids, pseudonyms that `audit` prints, and mail
// addresses. Addresses are personal data and are never stored: the user id secret makes the id, as
// the gateway makes it.
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { natsPolicy, nobodyIdFault, policyOf } from "#domain/publisher.ts"
import type { User } from "#identity/identity.ts"
import { isAddressHmac, principalNames, pseudonyms, userFault } from "#identity/principals.ts"
import { identitySettings, kindOf } from "#identity/settings.ts"
import { checkUseridSecret } from "#secrets/adoption.ts"
import { loadSecrets } from "#secrets/file.ts"
import { isUserToken } from "#streams/tokens.ts"
import { ownSettings, valuesOf } from "../terminal/input.ts"
import { failed, failedBy } from "../terminal/output.ts"

export const userGivenHelp =
  "<policy>:<id> or <policy>:<mail address>, or the pseudonym that audit prints"

/** Fails where an id needs the user id secret and the secret is missing or not the service's. */
export const userGiven = Effect.fnUntraced(function* (given: string) {
  if (isUserToken(given)) return { id: given, user: given } satisfies User
  const found = (yield* ownUsers).find(given)
  return typeof found === "string" ? yield* failed(`${given}: ${found}`) : found
})

/** The principal as it is stored. Fails where the secret is missing or is not the service's. */
export const storedPrincipal = Effect.fnUntraced(function* (principal: string) {
  if (!principal.includes("@") || /:@[0-9a-f]{64}$/.test(principal)) return principal
  return principalNames(yield* secretOf)(principal)
})

/**
 * The ids and pseudonyms of users, as the service makes them. Fails where the secret is missing or
 * is not the service's.
 */
export const ownUsers = Effect.gen(function* () {
  const faultOf = yield* policyFault
  const secret = yield* secretOf
  const [nameOf, tokenOf] = [principalNames(secret), pseudonyms(secret)]
  /** A user with this very id. */
  const named = (id: string): User => ({ id, user: tokenOf(id) })
  /** The user of an id, in which a mail address may stand, or why there is none. */
  const find = (given: string): User | string => {
    const [, policy, name] = /^([^:]*):(.*)$/s.exec(given) ?? []
    if (name === undefined || policyOf(given) !== policy) return "Expected <policy>:<id>"
    const fault = isAddressHmac(name) ? undefined : userFault(name)
    if (fault !== undefined) return `the id ${fault}`
    return faultOf(given) ?? nobodyIdFault(given) ?? named(nameOf(given))
  }
  return { find, named }
})

/** The pseudonym of a user. Fails where the secret is missing or is not the service's. */
export const pseudonymOf = (id: string) => Effect.map(secretOf, (secret) => pseudonyms(secret)(id))

/**
 * Why nobody can have a principal: its policy is none of ours, nor one that the settings name. The
 * settings may stand elsewhere; then only modules of an operator are unknown here.
 */
export const policyFault = Effect.gen(function* () {
  const { authPolicies } = yield* valuesOf(identitySettings)
  return (principal: string): string | undefined => {
    const policy = policyOf(principal)
    if (policy === undefined || policy === natsPolicy) return undefined
    if (authPolicies.some(({ name }) => name === policy)) return undefined
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

/**
 * The secret from the settings, or from the file beside the embedded server. Fails where there is
 * none, or another one than the service's.
 */
const secretOf = Effect.gen(function* () {
  const own = yield* ownSettings("dataDir", "useridHmacSecret")
  const secret = yield* Option.match(own.useridHmacSecret, {
    onSome: Effect.succeed,
    onNone: () =>
      Effect.mapBoth(loadSecrets(own.dataDir), {
        onFailure: () => failed(missing),
        onSuccess: (file) => Redacted.make(file.useridHmacSecret)
      })
  })
  yield* Effect.catchTag(checkUseridSecret(secret), "SecretsFault", (fault) =>
    Effect.fail(failedBy(fault))
  )
  return Redacted.value(secret)
})

const missing =
  "this user needs BELLCAST_USERID_HMAC_SECRET here, as the service has it (or secrets.json of " +
  "the embedded server, in BELLCAST_DATA_DIR): an HMAC stands for a user, and for a mail address"
