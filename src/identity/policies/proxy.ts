// Users whom an authenticating proxy in front names in headers: oauth2-proxy, Authelia, Authentik.
// Anybody can send such headers, so they count only from a trusted address and with a secret.
import { isUtf8 } from "node:buffer"
import { timingSafeEqual } from "node:crypto"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Values } from "#settings/every-setting.ts"
import { checkedText, secret } from "#settings/values.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import type { Policy } from "../policy.ts"
import { usableGroups, userFault } from "../principals.ts"
import type { Credentials } from "../verdict.ts"
import { invalidToken, known } from "../verdict.ts"

/** The header with the secret: a proxy that can add one can give it this name. */
const secretHeader = "x-proxy-secret"

export const proxySettings = (prefix: string) => ({
  /** The header with the user. */
  userHeader: header(`${prefix}_USER_HEADER`, "X-Forwarded-User"),
  /**
   * The header with the user's groups. None unless it is named: of a proxy that does not overwrite
   * it, clients would choose their groups.
   */
  groupsHeader: header(`${prefix}_GROUPS_HEADER`, ""),
  /** The text between two groups: some proxies allow the other character in names of groups. */
  groupsSeparator: checkedText(`${prefix}_GROUPS_SEPARATOR`, separatorFault).pipe(
    Config.withDefault(",")
  ),
  /** A secret that only the proxy knows. */
  secret: secret(`${prefix}_SECRET`)
})

type ProxySettings = Values<ReturnType<typeof proxySettings>>

export const proxy = Effect.fnUntraced(function* (name: string, settings: ProxySettings) {
  const { groupsHeader, groupsSeparator, userHeader } = settings
  const expected = Buffer.from(Redacted.value(settings.secret), "utf8")
  const refusal = (what: string) => {
    const warn = makeRateLimitedLog(`the policy ${name} refuses ${what}`)
    return (fields: Readonly<Record<string, unknown>> = {}) => Effect.as(warn(fields), invalidToken)
  }
  const ofOthers = refusal(
    "headers that did not come from the proxy " +
      `(BELLCAST_TRUSTED_PROXIES must name it, and it must send ${secretHeader})`
  )
  const repeated = refusal(
    "headers that arrive twice (the proxy must overwrite those that clients send)"
  )
  const otherBytes = refusal("names that are not UTF-8")
  const unusable = refusal("names that can be no ids")
  const identify = ({ fromTrustedProxy, headers, isRepeated }: Credentials) => {
    const [user, groups] = [textOf(headers[userHeader]), textOf(headers[groupsHeader])]
    if (user === "") return Effect.succeed(undefined)
    if (!fromTrustedProxy || !isSecret(headers[secretHeader], expected))
      return ofOthers({ trusted: fromTrustedProxy })
    if (isRepeated(userHeader) || isRepeated(groupsHeader)) return repeated()
    if (user === undefined || groups === undefined) return otherBytes()
    const fault = userFault(user)
    return fault === undefined
      ? Effect.succeed(known(user, groupsOf(groups, groupsSeparator)))
      : unusable({ fault })
  }
  const policy: Policy = {
    name,
    verifies: true,
    challenge: 'Proxy realm="Realm"',
    capability: {
      description: "Users whom the proxy in front of this server names.",
      url: ""
    },
    identify
  }
  return policy
})

const headerFault = (name: string): string | undefined =>
  /^[A-Za-z0-9-]{1,64}$/.test(name) ? undefined : "Expected the name of a header"

const separatorFault = (text: string): string | undefined =>
  [",", "|"].includes(text) ? undefined : "Expected , or |"

const header = (name: string, value: string) =>
  checkedText(name, headerFault).pipe(
    Config.withDefault(value),
    Config.map((text) => text.toLowerCase())
  )

/** The bytes that the proxy sent: Node decodes headers as Latin-1. */
const bytesOf = (header: string | undefined): Buffer => Buffer.from(header ?? "", "latin1")

const isSecret = (given: string | undefined, secret: Buffer): boolean => {
  const bytes = bytesOf(given)
  return bytes.length === secret.length && timingSafeEqual(bytes, secret)
}

/**
 * A header as UTF-8, in which proxies write names. Undefined for other bytes: as Latin-1, some of
 * them would be the name of another user in UTF-8.
 */
const textOf = (header: string | undefined): string | undefined => {
  const bytes = bytesOf(header)
  return isUtf8(bytes) ? bytes.toString("utf8") : undefined
}

const groupsOf = (text: string, separator: string): ReadonlyArray<string> =>
  usableGroups(text.split(separator).map((group) => group.trim()))
