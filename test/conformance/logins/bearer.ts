// Users by bearer tokens: introspection, the verify call, JWTs of an issuer, and of the site.
import { SignJWT } from "jose"
import { startIdentityProvider } from "#test/identity/provider.ts"
import { basic } from "./basicauth.ts"
import { type Login, oncePerUser, outageOf, seconds, type Users, type Wrong } from "./login.ts"

const challenge = 'Bearer realm="Realm"'
const invalid = `${challenge}, error="invalid_token"`
const audience = "bellcast"
const lifeSeconds = 3_600

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** Headers that no policy of bearer tokens takes. */
const wrongTokens: ReadonlyArray<Wrong> = [
  { name: "an unknown token", headers: bearer("unknown"), challenge: invalid },
  { name: "a scheme alone", headers: { authorization: "Bearer" }, challenge: invalid },
  { name: "two tokens", headers: bearer("a b"), challenge: invalid },
  { name: "another scheme", headers: { authorization: basic("a:b") }, challenge },
  { name: "an empty header", headers: { authorization: "" }, challenge }
]

const common = {
  challenge,
  isInAuthorization: true,
  isOfScripts: true
} as const

/** Opaque tokens. `membersOf`: what the server says of a user's token. */
const opaqueUsers = async (
  envOf: (url: string) => Users["env"],
  membersOf: (user: string) => Readonly<Record<string, unknown>>
): Promise<Users> => {
  const provider = await startIdentityProvider()
  const tokenOf = (user: string) => {
    const token = `opaque-${provider.tokens.size}`
    provider.tokens.set(token, membersOf(user))
    return bearer(token)
  }
  return {
    env: { BELLCAST_AUTH_POLICIES: "oauth", ...envOf(provider.url) },
    headersOf: oncePerUser(async (user) => tokenOf(user)),
    idOf: (user) => `oauth:${user}`,
    wrong: async () => wrongTokens,
    outage: async () => outageOf(provider, "/subscriptions", tokenOf("nobody")),
    [Symbol.asyncDispose]: async () => provider[Symbol.asyncDispose]()
  }
}

export const introspection: Login = {
  ...common,
  name: "oauth by introspection",
  policy: "oauth",
  isInHeartbeat: true,
  start: () =>
    opaqueUsers(
      (url) => ({
        BELLCAST_AUTH_OAUTH_INTROSPECTION_URL: `${url}/introspect`,
        BELLCAST_AUTH_OAUTH_CLIENT_ID: "bellcast",
        BELLCAST_AUTH_OAUTH_CLIENT_SECRET: "the secret of our client",
        BELLCAST_AUTH_OAUTH_AUDIENCE: audience
      }),
      (sub) => ({ active: true, sub, aud: audience, exp: seconds() + lifeSeconds })
    )
}

export const verifyCall: Login = {
  ...common,
  name: "oauth by the verify call",
  policy: "oauth",
  isInHeartbeat: true,
  start: () =>
    opaqueUsers(
      (url) => ({
        BELLCAST_AUTH_OAUTH_VERIFY_URL: url,
        BELLCAST_AUTH_OAUTH_REQUIRED_SCOPES: "push"
      }),
      (user) => ({ user, client_id: "pages", scope: ["push:write"] })
    )
}

export const openid: Login = {
  ...common,
  name: "openid",
  policy: "openid",
  isInHeartbeat: true,
  start: async () => {
    const issuer = await startIdentityProvider()
    const tokenOf = async (sub: string, claims = {}, header = {}) => {
      const all = { sub, aud: audience, exp: seconds() + lifeSeconds, ...claims }
      return bearer(await issuer.token(all, header))
    }
    const refused = async (name: string, claims: object, header: object = {}): Promise<Wrong> => ({
      name: `a token ${name}`,
      headers: await tokenOf("nobody", claims, header),
      challenge: invalid
    })
    return {
      env: {
        BELLCAST_AUTH_POLICIES: "openid",
        BELLCAST_AUTH_OPENID_ISSUER: issuer.url,
        BELLCAST_AUTH_OPENID_AUDIENCE: audience
      },
      headersOf: oncePerUser((user) => tokenOf(user)),
      idOf: (user) => `openid:${user}`,
      wrong: async () => [
        ...wrongTokens,
        await refused("for another audience", { aud: "another" }),
        await refused("that has expired", { exp: seconds() - 1 }),
        await refused("of an unknown key", {}, { kid: "unknown" })
      ],
      outage: async () => outageOf(issuer, "/subscriptions", await tokenOf("nobody")),
      [Symbol.asyncDispose]: async () => issuer[Symbol.asyncDispose]()
    }
  }
}

const siteSecret = "the_secret_of_the_site_and_of_Bellcast"

const signedBy = async (secret: string, claims: Readonly<Record<string, unknown>>) =>
  bearer(
    await new SignJWT({ aud: audience, exp: seconds() + lifeSeconds, ...claims })
      .setProtectedHeader({ alg: "HS256" })
      .sign(Buffer.from(secret))
  )

export const signed: Login = {
  ...common,
  name: "signed",
  policy: "signed",
  isInHeartbeat: false,
  start: async () => ({
    env: {
      BELLCAST_AUTH_POLICIES: "signed",
      BELLCAST_AUTH_SIGNED_SECRETS: siteSecret,
      BELLCAST_AUTH_SIGNED_AUDIENCE: audience
    },
    headersOf: oncePerUser((sub) => signedBy(siteSecret, { sub })),
    idOf: (user) => `signed:${user}`,
    wrong: async () => [
      ...wrongTokens,
      {
        name: "a token by another secret",
        headers: await signedBy(`${siteSecret}x`, { sub: "nobody" }),
        challenge: invalid
      },
      {
        name: "a token that has expired",
        headers: await signedBy(siteSecret, { sub: "nobody", exp: seconds() - 1 }),
        challenge: invalid
      }
    ],
    [Symbol.asyncDispose]: async () => {}
  })
}
