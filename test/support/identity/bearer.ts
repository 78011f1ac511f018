// A gateway with every policy for bearer tokens, and the providers that these ask.
import { generateKeyPairSync } from "node:crypto"
import { type CryptoKey, importPKCS8 } from "jose"
import { makeFolder } from "../folder.ts"
import { startNats } from "../nats.ts"
import { startService } from "../service.ts"
import { startIdentityProvider } from "./provider.ts"

/** Secrets that the site shares with Bellcast: the second is about to be replaced. */
export const secret = "the_shared_secret_of_the_site_and_of_Bellcast"
export const oldSecret = "the_shared_secret_that_is_about_to_be_replaced"

export type BearerGateway = Awaited<ReturnType<typeof startBearerGateway>>

type Providers = Readonly<Record<"opaque" | "external" | "issuer", { readonly url: string }>>

const environment = ({ external, issuer, opaque }: Providers, publicKeyFile: string) => ({
  BELLCAST_AUTH_POLICIES: "oauth oauth-accounts openid signed",
  BELLCAST_AUTH_OAUTH_INTROSPECTION_URL: `${opaque.url}/introspect`,
  BELLCAST_AUTH_OAUTH_CLIENT_ID: "bell cast",
  BELLCAST_AUTH_OAUTH_CLIENT_SECRET: "p:ss+%",
  BELLCAST_AUTH_OAUTH_AUDIENCE: "bellcast",
  BELLCAST_AUTH_OAUTH_REQUIRED_SCOPES: "push",
  BELLCAST_AUTH_OAUTH_GROUP_FIELDS: "scope",
  BELLCAST_AUTH_OAUTH_ACCOUNTS_VERIFY_URL: external.url,
  BELLCAST_AUTH_OAUTH_ACCOUNTS_REQUIRED_SCOPES: "push",
  BELLCAST_AUTH_OPENID_ISSUER: issuer.url,
  BELLCAST_AUTH_OPENID_AUDIENCE: "bellcast other",
  BELLCAST_AUTH_OPENID_GROUP_FIELDS: "realm_access.roles",
  BELLCAST_AUTH_SIGNED_SECRETS: `${secret} ${oldSecret}`,
  BELLCAST_AUTH_SIGNED_PUBLIC_KEY_FILES: publicKeyFile,
  BELLCAST_AUTH_SIGNED_AUDIENCE: "bellcast",
  BELLCAST_AUTH_FAILURES_PER_ADDRESS_PER_MINUTE_MAX: "0",
  BELLCAST_CHANNEL_WRITE_PRINCIPALS: "group:openid:editor"
})

export const startBearerGateway = async () => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519")
  const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString()
  const publicPem = publicKey.export({ type: "spki", format: "pem" }).toString()
  const [nats, opaque, external, issuer, folder] = await Promise.all([
    startNats(),
    startIdentityProvider(),
    startIdentityProvider(),
    startIdentityProvider(),
    makeFolder({ "site.pem": publicPem })
  ])
  const service = await startService({
    natsUrl: nats.url,
    roles: "gateway,projection,fanout",
    env: environment({ opaque, external, issuer }, `${folder.path}/site.pem`)
  })
  /** A token of the opaque provider, with these members in its introspection. */
  const introspected = (members: Readonly<Record<string, unknown>>): string => {
    const token = `opaque-${opaque.tokens.size}`
    const usual = { active: true, sub: "alice", aud: "bellcast", scope: "push" }
    opaque.tokens.set(token, { ...usual, ...members })
    return token
  }
  return {
    introspected,
    nats,
    service,
    opaque,
    external,
    issuer,
    /** The key with which the site signs users. */
    siteKey: (await importPKCS8(pem, "EdDSA")) as CryptoKey,
    [Symbol.asyncDispose]: async () => {
      await service.stop()
      const others = [opaque, external, issuer, nats, folder]
      await Promise.all(others.map((each) => each[Symbol.asyncDispose]()))
    }
  }
}
