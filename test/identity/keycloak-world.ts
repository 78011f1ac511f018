// Keycloak, a push service, a site and two services of Bellcast: one that verifies tokens by the published
// keys, and one that asks Keycloak about each.
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { exportJWK, exportPKCS8, generateKeyPair } from "jose"
import { sectionsOf, settingsIn } from "#test/identity-document.ts"
import { startNats } from "#test/nats.ts"
import { startPushService } from "#test/push-service.ts"
import { freePort, startService } from "#test/service.ts"
import { type Site, startSite } from "../e2e/site.ts"
import { clientSecret, startKeycloak, type Tokens } from "./keycloak.ts"
import { makeRealm, realm } from "./realm.ts"

/** The worked example for operators. */
export const section = sectionsOf("src/identity/policies/README.md").get("Keycloak")!

/** How long verified tokens are used without another verification. */
export const lifetimeSeconds = 4

const common = {
  BELLCAST_AUTH_VERIFICATION_TTL_SECONDS: String(lifetimeSeconds),
  BELLCAST_AUTH_FAILURES_PER_ADDRESS_PER_MINUTE_MAX: "0"
}

/** The settings as they stand in the document for operators, with the addresses of the test. */
const documented = (block: 0 | 1, issuer: string, port: number, site: Site) =>
  Object.fromEntries(
    Object.entries(settingsIn(section)[block]!).map(([name, value]) => [
      name,
      value
        .replace("https://login.example.org/realms/site", issuer)
        .replace("push.example.org", `127.0.0.1:${port}`)
        .replace("app.example.org", new URL(site.url).host)
        .replace("...", clientSecret)
    ])
  )

/** The same by a signed JWT: the audience tells for which of the two policies a token is. */
const keySettings = (settings: Readonly<Record<string, string>>, keyFile: string) => ({
  BELLCAST_AUTH_OAUTH_KEY_INTROSPECTION_URL: settings["BELLCAST_AUTH_OAUTH_INTROSPECTION_URL"]!,
  BELLCAST_AUTH_OAUTH_KEY_CLIENT_ID: "bellcast-key",
  BELLCAST_AUTH_OAUTH_KEY_CLIENT_KEY_FILE: keyFile,
  BELLCAST_AUTH_OAUTH_KEY_AUDIENCE: "bellcast-key"
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
    const openid = await startService({
      natsUrl,
      port,
      env: { ...common, ...documented(0, issuer, port, site), BELLCAST_HTTP_SCHEME: "http" }
    })
    stack.use(openid)
    const asked = documented(1, issuer, port, site)
    const policies = { BELLCAST_AUTH_POLICIES: `${asked["BELLCAST_AUTH_POLICIES"]} oauth-key` }
    const oauth = await startService({
      natsUrl,
      roles: "gateway",
      env: { ...common, ...asked, ...keySettings(asked, keyFile), ...policies }
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
