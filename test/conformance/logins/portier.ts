// Users who logged in by mail: each goes once through the login pages. The tests play the broker
// and the browser.
import { createHmac } from "node:crypto"
import { startIdentityProvider } from "#test/identity/provider.ts"
import { basic } from "./basicauth.ts"
import { type Headers, type Login, oncePerUser, outageOf, seconds, type Users } from "./login.ts"

const challenge = 'Portier realm="Realm"'
const invalid = `${challenge}, error="invalid_token"`
const page = "https://app.example.org/#token="
const lifeSeconds = 3_600
/** The header that a browser sends with a form of that page. */
const fromPage = { origin: new URL(page).origin }

const portierOf = (token: string) => ({ authorization: `Portier ${token}` })

const addressOf = (user: string): string => `${user.replaceAll(":", ".")}@example.org`

const loginPath = (user: string): string =>
  `/portier/login?${new URLSearchParams({ email: addressOf(user), redirect: page })}`

/** Sends a request of a browser, which does not follow the redirect. */
const visit = async (url: string, init: RequestInit = {}): Promise<Response> => {
  const response = await fetch(url, { redirect: "manual", ...init })
  const text = await response.text()
  if (response.status !== 302) throw new Error(`${new URL(url).pathname}: ${text}`)
  return response
}

/** Logs a user in. `prove`: what the broker says to a browser that proved its address. */
const login = async (
  root: string,
  user: string,
  prove: (nonce: string) => Promise<string>
): Promise<Headers> => {
  const begun = await visit(`${root}${loginPath(user)}`, { method: "POST", headers: fromPage })
  const nonce = new URL(begun.headers.get("location")!).searchParams.get("nonce")!
  const cookie = begun.headers.get("set-cookie")!.split(";")[0]!
  const returned = await visit(`${root}/portier/verify`, {
    method: "POST",
    headers: { cookie },
    body: new URLSearchParams({ id_token: await prove(nonce) })
  })
  return portierOf(returned.headers.get("location")!.slice(page.length))
}

/** The user's id: the HMAC of the address. */
const idUnder = (secret: string): Users["idOf"] => {
  const key = createHmac("sha256", secret).update("bellcast mail address").digest("hex")
  return (user) => `portier:@${createHmac("sha256", key).update(addressOf(user)).digest("hex")}`
}

export const portier: Login = {
  name: "portier",
  policy: "portier",
  challenge,
  isInAuthorization: true,
  isOfScripts: true,
  isInHeartbeat: true,
  namesHost: true,
  start: async ({ origin, secret }) => {
    const broker = await startIdentityProvider({
      id_token_signing_alg_values_supported: ["EdDSA"]
    })
    await broker.rotate("EdDSA", "fast")
    const proofOf = (user: string) => (nonce: string) =>
      broker.token(
        { aud: origin, sub: addressOf(user), iat: seconds(), email_verified: true, nonce },
        { typ: undefined }
      )
    return {
      env: {
        BELLCAST_AUTH_POLICIES: "portier",
        BELLCAST_HTTP_SCHEME: "http",
        BELLCAST_HTTP_HOST: new URL(origin).host,
        BELLCAST_AUTH_PORTIER_BROKER_URL: broker.url,
        BELLCAST_AUTH_PORTIER_REDIRECT_HOSTS: "app.example.org",
        BELLCAST_AUTH_PORTIER_SESSION_TTL_SECONDS: String(lifeSeconds),
        BELLCAST_AUTH_PORTIER_LOGINS_PER_CLIENT_PER_HOUR_MAX: "0"
      },
      headersOf: oncePerUser((user) => login(`${origin}/v1`, user, proofOf(user))),
      idOf: idUnder(secret),
      wrong: async () => [
        { name: "an unknown token", headers: portierOf("0".repeat(64)), challenge: invalid },
        { name: "what is no token", headers: portierOf("abc"), challenge: invalid },
        { name: "a scheme alone", headers: { authorization: "Portier" }, challenge },
        { name: "another scheme", headers: { authorization: basic("a:b") }, challenge },
        { name: "an empty header", headers: { authorization: "" }, challenge }
      ],
      outage: async () => outageOf(broker, loginPath("nobody:x"), fromPage, "POST"),
      [Symbol.asyncDispose]: async () => broker[Symbol.asyncDispose]()
    }
  }
}
