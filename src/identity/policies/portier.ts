// Users who prove that they receive mail at an address, by a Portier broker. The login pages give
// their browser the token of a session, which it sends with each request.
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import type { Values } from "#settings/every-setting.ts"
import { checkedText, within, words } from "#settings/values.ts"
import { hostPatternFault } from "../login/pages.ts"
import { portierPages } from "../login/portier-login.ts"
import { makeSessions } from "../login/sessions.ts"
import type { Policy } from "../policy.ts"
import { hostOf, makeSend, providerUrlFault } from "../provider/client.ts"
import { makeKeySet } from "../provider/key-set.ts"
import { invalidToken } from "../verdict.ts"
import { Verifications } from "../verification/verifications.ts"

export const portierSettings = (prefix: string) => ({
  /** The broker, as its tokens name it. */
  brokerUrl: checkedText(`${prefix}_BROKER_URL`, providerUrlFault).pipe(
    Config.map((url) => url.replace(/\/$/, ""))
  ),
  /** Hosts of pages to which a login may return: shell patterns. */
  redirectHosts: words(`${prefix}_REDIRECT_HOSTS`, hostPatternFault),
  /** The life of a session. Using it does not extend it. The bucket `cache` forgets after a day. */
  sessionTtlSeconds: within(`${prefix}_SESSION_TTL_SECONDS`, 1, 86_400).pipe(
    Config.withDefault(900)
  ),
  /**
   * Logins that one client may begin in an hour, each of which sends a mail. 100 allow an office
   * behind one address. 0: no limit. Each process counts for itself.
   */
  loginsPerClientPerHourMax: within(`${prefix}_LOGINS_PER_CLIENT_PER_HOUR_MAX`, 0, 1_000_000).pipe(
    Config.withDefault(100)
  )
})

type PortierSettings = Values<ReturnType<typeof portierSettings>>

/** Its pages are at fixed paths, so there is one. */
export const portierFaults = (name: string): ReadonlyArray<string> =>
  name === "portier"
    ? []
    : [`BELLCAST_AUTH_POLICIES: ${name}: there is one policy portier, without a suffix`]

export const portier = Effect.fnUntraced(function* (name: string, settings: PortierSettings) {
  const { brokerUrl, sessionTtlSeconds } = settings
  const keySet = yield* makeKeySet(name, brokerUrl, yield* makeSend(name, [hostOf(brokerUrl)]))
  const sessions = yield* makeSessions(name, sessionTtlSeconds)
  const verified = (yield* Verifications).make({
    policy: name,
    verify: sessions.find
  })
  const policy: Policy = {
    name,
    verifies: true,
    isInAuthorization: true,
    challenge: 'Portier realm="Realm"',
    capability: {
      description: "Logins by mail, through a Portier broker.",
      url: "https://portier.github.io"
    },
    waits: true,
    identify: (credentials) => {
      const { scheme, token } = credentials
      if (scheme !== "portier" || token === "") return Effect.succeed(undefined)
      return /^[0-9a-f]{64}$/i.test(token)
        ? verified(token.toLowerCase(), credentials)
        : Effect.succeed(invalidToken)
    },
    isUp: keySet.isUp,
    pages: yield* portierPages({ ...settings, name, issuer: brokerUrl }, keySet, sessions)
  }
  return policy
})
