// The certified oidc-provider on loopback: an issuer with the authorization code flow, JWT access
// tokens, introspection of opaque ones, and keys that change. Logs in one user, at first alice,
// without asking.
import { once } from "node:events"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { exportJWK, generateKeyPair } from "jose"
import Provider, { type Configuration } from "oidc-provider"

export type Algorithm = "RS256" | "ES256" | "EdDSA"

export interface OidcProvider extends AsyncDisposable {
  readonly issuer: string
  /** The next tokens are signed by a new key; the former one is not published any more. */
  readonly rotate: (algorithm: Algorithm) => Promise<void>
  /** Browsers without a session here are this user from now on. */
  readonly logsIn: (user: string) => void
  /** Paths of all requests. */
  readonly requests: ReadonlyArray<string>
}

export const clientSecret = "p:ss +%/"
const audience = "bellcast"

const keyOf = async (algorithm: Algorithm) => {
  const { privateKey } = await generateKeyPair(algorithm, { extractable: true })
  return { ...(await exportJWK(privateKey)), alg: algorithm, use: "sig" }
}

const claimsOf = (id: string) => ({
  sub: id,
  email: `${id}@example.org`,
  email_verified: true,
  preferred_username: id,
  groups: ["editor", "staff"]
})

interface Client {
  readonly clientId: string
}

const configurationOf = async (
  algorithm: Algorithm,
  redirectUris: ReadonlyArray<string>
): Promise<Configuration> => ({
  jwks: { keys: [await keyOf(algorithm)] },
  cookies: { keys: ["a key for tests"] },
  scopes: ["openid", "push", "email", "profile", "groups"],
  claims: {
    email: ["email", "email_verified"],
    profile: ["preferred_username"],
    groups: ["groups"]
  },
  // In the ID token, as most issuers have them.
  conformIdTokenClaims: false,
  clients: [
    {
      client_id: "page",
      client_secret: clientSecret,
      redirect_uris: [...redirectUris],
      id_token_signed_response_alg: algorithm
    },
    {
      client_id: "bellcast",
      client_secret: clientSecret,
      redirect_uris: [],
      response_types: [],
      grant_types: ["client_credentials"],
      id_token_signed_response_alg: algorithm
    }
  ],
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    introspection: { enabled: true, allowedPolicy: () => true },
    revocation: { enabled: true, allowedPolicy: () => true },
    resourceIndicators: {
      enabled: true,
      // Access tokens of the page are JWTs, those of the other client opaque.
      defaultResource: (_: unknown, { clientId }: Client) =>
        clientId === "page" ? "https://bellcast.example" : [],
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        scope: "push",
        audience,
        accessTokenFormat: "jwt",
        jwt: { sign: { alg: algorithm } }
      })
    }
  },
  ttl: {
    Interaction: 60,
    Grant: 60,
    Session: 60,
    AccessToken: 60,
    AuthorizationCode: 60,
    IdToken: 60,
    ClientCredentials: 60
  },
  renderError: (context: { body: unknown }, { error }: { error: string }) => {
    context.body = error
  },
  interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
  findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => claimsOf(id) }),
  loadExistingGrant: async (context: {
    oidc: { provider: Provider; client: Client; session: { accountId: string } }
  }) => {
    const { client, provider, session } = context.oidc
    const { accountId } = session
    const grant = new provider.Grant({ clientId: client.clientId, accountId })
    grant.addOIDCScope("openid push email profile groups")
    grant.addResourceScope("https://bellcast.example", "push")
    await grant.save()
    return grant
  }
})

export const startOidcProvider = async (
  redirectUris: ReadonlyArray<string>
): Promise<OidcProvider> => {
  let provider: Provider
  const requests: Array<string> = []
  let accountId = "alice"
  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    requests.push(request.url ?? "")
    if (request.url?.startsWith("/interaction/"))
      await provider.interactionFinished(request, response, { login: { accountId } })
    else await provider.callback()(request, response)
  }
  const server = createServer((request, response) => void respond(request, response))
  await once(server.listen(0, "127.0.0.1"), "listening")
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const rotate = async (algorithm: Algorithm) => {
    provider = new Provider(issuer, await configurationOf(algorithm, redirectUris))
  }
  await rotate("RS256")
  return {
    issuer,
    rotate,
    logsIn: (user) => {
      accountId = user
    },
    requests,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, "close")
    }
  }
}
