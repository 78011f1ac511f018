// Keycloak, a push service, a site and two services of Bellcast: one that verifies tokens by the published
// keys, and one that asks Keycloak about each.
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { exportJWK, exportPKCS8, generateKeyPair } from "jose"
import { startNats } from "#test/nats.ts"
import { startPushService } from "#test/push-service.ts"
import { freePort, startService } from "#test/service.ts"
import { type Site, startSite } from "../e2e/site.ts"
import { clientSecret, startKeycloak, type Tokens } from "./keycloak.ts"
import { makeRealm, realm } from "./realm.ts"

/** How long verified tokens are used without another verification. */
export const lifetimeSeconds = 4

const common = {
  BELLCAST_AUTH_VERIFICATION_TTL_SECONDS: String(lifetimeSeconds),
  BELLCAST_AUTH_FAILURES_PER_ADDRESS_PER_MINUTE_MAX: "0"
}

const openidSettings = (issuer: string, port: number, site: Site) => ({
  ...common,
  BELLCAST_AUTH_POLICIES: "openid",
  BELLCAST_AUTH_OPENID_ISSUER: issuer,
  BELLCAST_AUTH_OPENID_AUDIENCE: "bellcast",
  BELLCAST_AUTH_OPENID_GROUP_FIELDS: "realm_access.roles",
  BELLCAST_CHANNEL_WRITE_PRINCIPALS: "group:openid:editor",
  BELLCAST_AUTH_OPENID_CLIENT_ID: "page",
  BELLCAST_AUTH_OPENID_CLIENT_SECRET: clientSecret,
  BELLCAST_AUTH_OPENID_CALLBACK_HOSTS: new URL(site.url).host,
  BELLCAST_HTTP_SCHEME: "http",
  BELLCAST_HTTP_HOST: `127.0.0.1:${port}`
})

const oauthSettings = (issuer: string, keyFile: string) => ({
  ...common,
  BELLCAST_AUTH_POLICIES: "oauth oauth-key",
  BELLCAST_AUTH_OAUTH_INTROSPECTION_URL: `${issuer}/protocol/openid-connect/token/introspect`,
  BELLCAST_AUTH_OAUTH_CLIENT_ID: "bellcast",
  BELLCAST_AUTH_OAUTH_CLIENT_SECRET: clientSecret,
  BELLCAST_AUTH_OAUTH_AUDIENCE: "bellcast",
  BELLCAST_AUTH_OAUTH_GROUP_FIELDS: "realm_access.roles",
  BELLCAST_AUTH_OAUTH_KEY_INTROSPECTION_URL: `${issuer}/protocol/openid-connect/token/introspect`,
  BELLCAST_AUTH_OAUTH_KEY_CLIENT_ID: "bellcast-key",
  BELLCAST_AUTH_OAUTH_KEY_CLIENT_KEY_FILE: keyFile,
  BELLCAST_AUTH_OAUTH_KEY_AUDIENCE: "bellcast-key",
  BELLCAST_CHANNEL_WRITE_PRINCIPALS: "group:oauth:editor"
})

/** What a service does with the tokens of Keycloak's users. */
const clientOf = (baseUrl: string) => {
  const send = (token: string, method: string, path: string, data?: unknown) =>
    fetch(`${baseUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(data === undefined ? {} : { body: JSON.stringify({ data }) })
    })
  return {
    send,
    /** Of a request that any user may make. */
    statusOf: async (token: string) => (await send(token, "GET", "/subscriptions")).status,
    idOf: async (token: string) => {
      const { user } = (await (await send(token, "GET", "/")).json()) as { user?: { id: string } }
      return user?.id
    }
  }
}

export const startWorld = async () => {
  const folder = await mkdtemp(join(tmpdir(), "bellcast-"))
  const stack = new AsyncDisposableStack()
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  try {
    const keyFile = join(folder, "bellcast.pem")
    const { privateKey, publicKey } = await generateKeyPair("ES256", { extractable: true })
    await writeFile(keyFile, await exportPKCS8(privateKey))
    const nats = stack.use(await startNats())
    const push = stack.use(await startPushService())
    const site = stack.use(await startSite())
    const keycloak = stack.use(await startKeycloak())
    const port = await freePort()
    await makeRealm(keycloak, {
      redirectUri: `http://127.0.0.1:${port}/v1/openid/openid/token`,
      publicKey: { ...(await exportJWK(publicKey)), alg: "ES256", use: "sig", kid: "bellcast" }
    })
    const issuer = `${keycloak.url}/realms/${realm}`
    const natsUrl = nats.url
    const openid = await startService({ natsUrl, port, env: openidSettings(issuer, port, site) })
    stack.use(openid)
    const oauth = await startService({
      natsUrl,
      roles: "gateway",
      env: oauthSettings(issuer, keyFile)
    })
    stack.use(oauth)
    return {
      keycloak,
      push,
      /** The page to which logins return. */
      site,
      openid: { ...openid, ...clientOf(openid.url) },
      oauth: { ...oauth, ...clientOf(oauth.url) },
      tokens: (client: string, user: string): Promise<Tokens> =>
        keycloak.tokens(realm, client, user),
      [Symbol.asyncDispose]: () => stack.disposeAsync()
    }
  } catch (error) {
    await stack.disposeAsync()
    throw error
  }
}

export type World = Awaited<ReturnType<typeof startWorld>>

export const claimsOf = (token: string): Readonly<Record<string, unknown>> =>
  JSON.parse(Buffer.from(token.split(".")[1]!, "base64url").toString())
