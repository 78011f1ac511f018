// How we log in at an authorization server: client_secret_basic (RFC 6749 section 2.3.1) or
// private_key_jwt (RFC 7523 section 2.2).

import { createPrivateKey, randomUUID } from "node:crypto"
import { readFileSync } from "node:fs"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { SignJWT } from "jose"
import { type SettingsError, settingsFault } from "#settings/every-setting.ts"
import { IdentityUnavailable } from "../verdict.ts"

type Texts = Readonly<Record<string, string>>

/** With what a request logs in. */
export interface ClientLogin {
  readonly headers: Texts
  /** Form fields, made anew for each attempt: servers take an assertion once (RFC 7523). */
  readonly fields: Effect.Effect<Texts, IdentityUnavailable>
}

interface LoginSettings {
  readonly clientId: Option.Option<string>
  readonly clientSecret: Option.Option<Redacted.Redacted<string>>
  readonly clientKeyFile: Option.Option<string>
}

/** RFC 6749 appendix B: form encoding of id and secret, before they are joined. */
const formEncoded = (text: string): string => new URLSearchParams({ "": text }).toString().slice(1)

export const bySecret = (id: string, secret: string): ClientLogin => {
  const pair = `${formEncoded(id)}:${formEncoded(secret)}`
  const headers = { authorization: `Basic ${Buffer.from(pair).toString("base64")}` }
  return { headers, fields: Effect.succeed({}) }
}

const assertionSeconds = 60
const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

/** By the curve, or by the type of a key without one. */
const algorithms: Readonly<Record<string, string>> = {
  rsa: "RS256",
  ed25519: "EdDSA",
  prime256v1: "ES256",
  secp384r1: "ES384"
}

const byKey = Effect.fnUntraced(function* (
  policy: string,
  setting: string,
  id: string,
  file: string,
  audience: string
): Effect.fn.Return<ClientLogin, SettingsError> {
  const key = yield* Effect.try({
    try: () => createPrivateKey(readFileSync(file, "utf8")),
    // The text may be the key itself: never quote it.
    catch: () => settingsFault([`${setting}: Expected the path of a file with a private key (PEM)`])
  })
  const { asymmetricKeyDetails, asymmetricKeyType } = key
  const alg = algorithms[asymmetricKeyDetails?.namedCurve ?? asymmetricKeyType ?? ""]
  if (alg === undefined)
    return yield* settingsFault([`${setting}: Expected a key for RS256, ES256, ES384 or EdDSA`])
  const fields = Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const iat = Math.floor(now / 1000)
    const times = { iat, exp: iat + assertionSeconds }
    const claims = { jti: randomUUID(), iss: id, sub: id, aud: audience, ...times }
    return Effect.tryPromise({
      try: async () => ({
        client_id: id,
        client_assertion_type: assertionType,
        client_assertion: await new SignJWT(claims).setProtectedHeader({ alg }).sign(key)
      }),
      catch: () => new IdentityUnavailable({ policy, cause: "the assertion cannot be signed" })
    })
  })
  return { headers: {}, fields }
})

/** The login from the settings. `audience`: the endpoint, for which assertions are signed. */
export const makeClientLogin = (
  policy: string,
  prefix: string,
  audience: string,
  { clientId, clientKeyFile, clientSecret }: LoginSettings
): Effect.Effect<ClientLogin, SettingsError> => {
  const id = Option.getOrElse(clientId, () => "")
  return Option.isSome(clientKeyFile)
    ? byKey(policy, `${prefix}_CLIENT_KEY_FILE`, id, clientKeyFile.value, audience)
    : Effect.succeed(bySecret(id, Redacted.value(Option.getOrThrow(clientSecret))))
}
