// Keycloak, a push service, a site and services of Bellcast: two that verify tokens by the
// published keys, with TLS in front and without, and one that asks Keycloak about each token.
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { exportJWK, exportPKCS8, generateKeyPair } from "jose"
import { sectionsOf, settingsIn } from "#test/identity/document.ts"
import { startNats } from "#test/nats.ts"
import { claimPort } from "#test/ports.ts"
import { startPushService } from "#test/push-service.ts"
import { startService } from "#test/service.ts"
import { type Site, startSite } from "../../e2e/site.ts"
import { clientSecret, startKeycloak, type Tokens } from "./keycloak.ts"
import { startTlsProxy } from "./portier-site.ts"
import { makeRealm, realm } from "./realm.ts"

/** The worked example for operators. */
export const section = sectionsOf("src/identity/policies/README.md").get("Keycloak")!

/** How long verified tokens are used without another verification. */
export const lifetimeSeconds = 4

const common = {
  BELLCAST_AUTH_VERIFICATION_TTL_SECONDS: String(lifetimeSeconds),
  BELLCAST_AUTH_FAILURES_PER_ADDRESS_PER_MINUTE_MAX: "0"
}

type Environment = Readonly<Record<string, string>>

/** The settings as they stand in the document for operators, with the addresses of the test. */
const documented = (block: 0 | 1, issuer: string, host: string, site: Site): Environment =>
  Object.fromEntries(
    Object.entries(settingsIn(section)[block]!).map(([name, value]) => [
      name,
      value
        .replace("https://login.example.org/realms/site", issuer)
        .replace("push.example.org", host)
        .replace("app.example.org", new URL(site.url).host)
        .replace("...", clientSecret)
    ])
  )

/** The same by a signed JWT: the audience tells for which of the two policies a token is. */
const keySettings = (settings: Environment, keyFile: string) => ({
  BELLCAST_AUTH_OAUTH_KEY_INTROSPECTION_URL: settings["BELLCAST_AUTH_OAUTH_INTROSPECTION_URL"]!,
  BELLCAST_AUTH_OAUTH_KEY_CLIENT_ID: "bellcast-key",
  BELLCAST_AUTH_OAUTH_KEY_CLIENT_KEY_FILE: keyFile,
  BELLCAST_AUTH_OAUTH_KEY_AUDIENCE: "bellcast-key"
})

interface User {
  readonly id: string
  readonly principals: ReadonlyArray<string>
}

/** Requests to a service with the tokens of Keycloak's users. */
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
    /** How Bellcast calls the user of a token. */
    userOf: async (token: string) => {
      const { user } = (await (await send(token, "GET", "/")).json()) as { user?: User }
      return user
    }
  }
}

/** A key by which Bellcast logs in at Keycloak: its file, and what Keycloak knows of it. */
const makeKey = async (folder: string) => {
  const { privateKey, publicKey } = await generateKeyPair("ES256", { extractable: true })
  const file = join(folder, "bellcast.pem")
  await writeFile(file, await exportPKCS8(privateKey))
  const jwk = { ...(await exportJWK(publicKey)), alg: "ES256", use: "sig", kid: "bellcast" }
  return { file, jwk }
}

/** Where browsers find the two services with login pages. To them Keycloak is another site. */
const startOrigins = async (stack: AsyncDisposableStack) => {
  const ports = { behindProxy: await claimPort(), plain: await claimPort() }
  const proxy = stack.use(await startTlsProxy(ports.behindProxy))
  return {
    ports,
    https: `https://localhost:${proxy.port}`,
    http: `http://localhost:${ports.plain}`
  }
}

const startAll = async (stack: AsyncDisposableStack) => {
  const folder = await mkdtemp(join(tmpdir(), "bellcast-"))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const nats = stack.use(await startNats())
  const push = stack.use(await startPushService())
  const site = stack.use(await startSite())
  const keycloak = stack.use(await startKeycloak())
  const { http, https, ports } = await startOrigins(stack)
  const key = await makeKey(folder)
  const redirectUris = [https, http].map((origin) => `${origin}/v1/openid/openid/token`)
  await makeRealm(keycloak, { redirectUris, publicKey: key.jwk })

  const start = async (roles: string, port: number, env: Environment) => {
    const settings = { natsUrl: nats.url, port, roles, env: { ...common, ...env } }
    const service = stack.use(await startService(settings))
    return { ...service, ...clientOf(service.url) }
  }
  const issuer = `${keycloak.url}/realms/${realm}`
  const byKeys = documented(0, issuer, new URL(https).host, site)
  const asked = documented(1, issuer, new URL(https).host, site)
  return {
    keycloak,
    push,
    /** The page to which logins return. */
    site,
    openid: await start("gateway,projection,fanout,delivery,tally", ports.behindProxy, byKeys),
    /** As `openid`, without TLS, and with roles of the client, too. */
    plain: await start("gateway", ports.plain, {
      ...byKeys,
      BELLCAST_AUTH_OPENID_GROUP_FIELDS: "realm_access.roles resource_access.bellcast.roles",
      BELLCAST_HTTP_SCHEME: "http",
      BELLCAST_HTTP_HOST: new URL(http).host
    }),
    oauth: await start("gateway", await claimPort(), {
      ...asked,
      ...keySettings(asked, key.file),
      BELLCAST_AUTH_POLICIES: `${asked["BELLCAST_AUTH_POLICIES"]} oauth-key`
    }),
    origins: { http, https },
    tokens: (client: string, user: string): Promise<Tokens> => keycloak.tokens(realm, client, user)
  }
}

export const startWorld = async () => {
  const stack = new AsyncDisposableStack()
  try {
    const all = await startAll(stack)
    return { ...all, [Symbol.asyncDispose]: () => stack.disposeAsync() }
  } catch (error) {
    await stack.disposeAsync()
    throw error
  }
}

export type World = Awaited<ReturnType<typeof startWorld>>

export const claimsOf = (token: string): Readonly<Record<string, unknown>> =>
  JSON.parse(Buffer.from(token.split(".")[1]!, "base64url").toString())
