// Two gateways that believe every policy at once, at the most talkative level of the log, and the
// providers that these policies ask.
import { makeFolder } from "../folder.ts"
import { startNats } from "../nats.ts"
import { claimPort } from "../ports.ts"
import { startService } from "../service.ts"
import { clientSecret, startOidcProvider } from "./oidc-provider.ts"
import { startIdentityProvider } from "./provider.ts"

export const page = "https://app.example.org/#token="
export const siteSecret = "the-secret-of-the-site-and-of-Bellcast"
export const proxySecret = "a secret of the proxy, of thirty-two bytes"
const introspectionSecret = "the login at the introspection"

/** Secrets that stand in the settings. */
export const configured = [siteSecret, proxySecret, introspectionSecret, clientSecret]

/** A module of an operator that fails, with the token in all that it says of the failure. */
const broken = `export default {
  authenticate: async ({ scheme, token }) => {
    if (scheme !== "broken") return undefined
    if (token.startsWith("named-")) throw { constructor: { name: token } }
    if (token.startsWith("user-")) return { user: token + "\\n", groups: [token] }
    throw Object.assign(new Error("no session " + token, { cause: new Error(token) }), {
      name: token, code: token, token
    })
  }
}`

/** A module of an operator that knows one user by a mail address. */
const acme = `export default {
  authenticate: async ({ scheme, token }) =>
    scheme === "acme" && token === "acme-session-of-zoe"
      ? { user: "zoe@example.org", groups: ["zoe-friends@example.org", "editor"] }
      : undefined
}`

type Url = { readonly url: string }

/** The page of the console, to which logins may return without a setting of their own. */
export const consolePage = "http://localhost:4999/v1/console/"

const environment = (port: number, asked: Url, issuer: string) => ({
  BELLCAST_LOG_LEVEL: "trace",
  BELLCAST_TRUSTED_PROXIES: "127.0.0.1",
  BELLCAST_HTTP_SCHEME: "http",
  BELLCAST_HTTP_HOST: `127.0.0.1:${port}`,
  BELLCAST_CONSOLE_ORIGIN: new URL(consolePage).origin,
  BELLCAST_AUTH_POLICIES:
    "broken=./broken.mjs acme=./acme.mjs token oauth oauth-accounts openid signed proxy portier " +
    "basicauth",
  BELLCAST_AUTH_FAILURES_PER_ADDRESS_PER_MINUTE_MAX: "0",
  BELLCAST_AUTH_OAUTH_INTROSPECTION_URL: `${asked.url}/introspect`,
  BELLCAST_AUTH_OAUTH_CLIENT_ID: "bellcast",
  BELLCAST_AUTH_OAUTH_CLIENT_SECRET: introspectionSecret,
  BELLCAST_AUTH_OAUTH_GROUP_FIELDS: "groups",
  BELLCAST_AUTH_OAUTH_ACCOUNTS_VERIFY_URL: asked.url,
  BELLCAST_AUTH_OAUTH_ACCOUNTS_REQUIRED_SCOPES: "push",
  BELLCAST_AUTH_OPENID_ISSUER: issuer,
  BELLCAST_AUTH_OPENID_AUDIENCE: "bellcast",
  BELLCAST_AUTH_OPENID_CLIENT_ID: "page",
  BELLCAST_AUTH_OPENID_CLIENT_SECRET: clientSecret,
  BELLCAST_AUTH_OPENID_CALLBACK_HOSTS: "app.example.org",
  BELLCAST_AUTH_SIGNED_SECRETS: siteSecret,
  BELLCAST_AUTH_SIGNED_AUDIENCE: "bellcast",
  BELLCAST_AUTH_PROXY_SECRET: proxySecret,
  BELLCAST_AUTH_PROXY_GROUPS_HEADER: "X-Forwarded-Groups",
  BELLCAST_AUTH_PORTIER_BROKER_URL: asked.url,
  BELLCAST_AUTH_PORTIER_REDIRECT_HOSTS: "app.example.org"
})

export type EveryPolicy = Awaited<ReturnType<typeof startEveryPolicy>>

/** `asked` plays the introspection, the verify call and the broker; `issuer` is that of openid. */
export const startEveryPolicy = async () => {
  const port = await claimPort()
  const [nats, asked, issuer, folder] = await Promise.all([
    startNats(),
    startIdentityProvider(),
    startOidcProvider([`http://127.0.0.1:${port}/v1/openid/openid/token`]),
    makeFolder({ "broken.mjs": broken, "acme.mjs": acme })
  ])
  const options = {
    natsUrl: nats.url,
    cwd: folder.path,
    env: environment(port, asked, issuer.issuer)
  }
  const service = await startService({
    ...options,
    port,
    roles: "gateway,projection,fanout,tally"
  })
  const second = await startService({ ...options, roles: "gateway" })
  return {
    nats,
    service,
    /** Another gateway of the same service. */
    second,
    traces: { services: [service, second], natsUrl: nats.url, folder: nats.folder },
    asked,
    issuer,
    origin: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      await Promise.all([service.stop(), second.stop()])
      await Promise.all([asked, issuer, nats, folder].map((each) => each[Symbol.asyncDispose]()))
    }
  }
}
