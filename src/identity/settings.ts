// The settings of identification. Each policy has settings of its own beside these, named after it:
// the policy oauth-staff reads BELLCAST_AUTH_OAUTH_STAFF_<NAME>.
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import { natsPolicy } from "#domain/publisher.ts"
import { importPolicy } from "#domain/subscription/command.ts"
import { everySetting, type Values } from "#settings/every-setting.ts"
import { within, words } from "#settings/values.ts"

/** A policy in BELLCAST_AUTH_POLICIES: `name`, or `name=path` for a module of the operator. */
export interface NamedPolicy {
  readonly name: string
  readonly module: string | undefined
}

export const policyKinds = [
  "oauth",
  "openid",
  "signed",
  "proxy",
  "portier",
  "token",
  "basicauth"
] as const
export type PolicyKind = (typeof policyKinds)[number]

const namePattern = /^[a-z][a-z0-9-]{0,30}$/
/** Principals, pseudonyms, members of the heartbeat and capabilities have these names. */
const reserved = [
  ...["system", "group", "webpush", "pseudonym", natsPolicy, importPolicy],
  ...["storage", "cache", "permission", "space", "delivery"]
]

const namedPolicyOf = (word: string): NamedPolicy => {
  const [name = "", ...path] = word.split("=")
  return { name, module: path.length === 0 ? undefined : path.join("=") }
}

/** The kind of a policy of ours: its name up to the first hyphen. */
export const kindOf = (name: string): PolicyKind | undefined =>
  policyKinds.find((kind) => name === kind || name.startsWith(`${kind}-`))

/** Why an item of BELLCAST_AUTH_POLICIES cannot be used. */
export const policyFault = (word: string): string | undefined => {
  const { module, name } = namedPolicyOf(word)
  if (!namePattern.test(name) || reserved.includes(name))
    return (
      "a policy's name has letters a to z, digits and hyphens, and is none of " +
      reserved.join(", ")
    )
  if (module !== undefined)
    return /^\.{0,2}\//.test(module) ? undefined : "a module is a path: acme=./my-policy.ts"
  if (kindOf(name) !== undefined) return undefined
  return (
    `policies are ${policyKinds.join(", ")} (also with a suffix: ${policyKinds[0]}-staff), ` +
    "or name=./module.ts"
  )
}

/** The beginning of the names of a policy's settings. */
export const settingPrefix = (name: string): string =>
  `BELLCAST_AUTH_${name.toUpperCase().replaceAll("-", "_")}`

export const identitySettings = {
  /** Policies in the order in which they are asked. The first that knows the caller decides. */
  authPolicies: words("BELLCAST_AUTH_POLICIES", policyFault).pipe(
    Config.map((list) => list.map(namedPolicyOf))
  ),
  /**
   * Credentials by which no policy finds a user, per address and minute, before those of this
   * address that are not known yet are refused. 0: no limit. Each process counts for itself.
   */
  authFailuresPerAddressPerMinuteMax: within(
    "BELLCAST_AUTH_FAILURES_PER_ADDRESS_PER_MINUTE_MAX",
    0,
    1_000_000
  ).pipe(Config.withDefault(60)),
  /**
   * How long verified credentials are used without another verification. So long may a revoked
   * token work. They are never used after their own end.
   */
  authVerificationTtlSeconds: within("BELLCAST_AUTH_VERIFICATION_TTL_SECONDS", 1, 3_600).pipe(
    Config.withDefault(300)
  )
}

export class IdentitySettings extends Context.Service<
  IdentitySettings,
  Values<typeof identitySettings>
>()("bellcast/identity/Settings") {
  static readonly layer = Layer.effect(IdentitySettings, everySetting(identitySettings))
}

const choices =
  "none is on, so nobody can be a user: name the logins to believe. " +
  "openid or oauth: tokens of a login server; signed: the login of your own site; " +
  "proxy: a proxy in front that logs people in; portier: logins by mail; " +
  "token: servers that publish; basicauth: development only, as it believes anybody. " +
  'For instance BELLCAST_AUTH_POLICIES="openid token"; src/identity/README.md explains each'

/** Faults of the list as a whole. `isNeeded`: this process serves the API. */
export const policyListFaults = (
  policies: ReadonlyArray<NamedPolicy>,
  isNeeded: boolean
): ReadonlyArray<string> => {
  const names = policies.map(({ name }) => name)
  const twice = names.find((name, i) => names.indexOf(name) < i)
  return [
    ...(isNeeded && policies.length === 0 ? [`BELLCAST_AUTH_POLICIES: ${choices}`] : []),
    ...(twice === undefined ? [] : [`BELLCAST_AUTH_POLICIES: ${twice} stands there twice`])
  ]
}
