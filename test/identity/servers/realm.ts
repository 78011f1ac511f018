// The realm of the tests, as src/identity/policies/README.md tells operators to make one.
import type { JWK } from "jose"
import { clientSecret, type Keycloak, password } from "./keycloak.ts"

export const realm = "site"

/** "Audience" of "Add mapper" in the admin console: writes `aud`. */
const audienceMapper = (audience: string, inIdToken: boolean) => ({
  name: `audience ${audience}`,
  protocol: "openid-connect",
  protocolMapper: "oidc-audience-mapper",
  config: {
    "included.client.audience": audience,
    "access.token.claim": "true",
    "id.token.claim": String(inIdToken),
    "introspection.token.claim": "true"
  }
})

/** A client of the site's pages. `directAccessGrants`: its users may log in by password. */
const page = (clientId: string, audiences: ReadonlyArray<string>, more: object = {}) => ({
  clientId,
  secret: clientSecret,
  directAccessGrantsEnabled: true,
  // The client `careless` writes the audience into ID tokens, too. These must be refused.
  protocolMappers: audiences.map((audience) => audienceMapper(audience, clientId === "careless")),
  ...more
})

/** A client that only introspects. */
const server = (clientId: string, more: object) => ({
  clientId,
  standardFlowEnabled: false,
  ...more
})

const user = (username: string, realmRoles: ReadonlyArray<string>) => ({
  username,
  enabled: true,
  email: `${username}@example.org`,
  firstName: username,
  lastName: "Example",
  emailVerified: true,
  credentials: [{ type: "password", value: password, temporary: false }],
  // As users have them that are made in the admin console.
  realmRoles: [`default-roles-${realm}`, ...realmRoles]
})

export interface RealmOptions {
  /** Where the login pages return to. */
  readonly redirectUris: ReadonlyArray<string>
  /** The public key by which bellcast-key logs in. */
  readonly publicKey: JWK
}

/** Access tokens of `short` end after so many seconds. */
export const shortSeconds = 3

export const makeRealm = async (
  keycloak: Keycloak,
  { publicKey, redirectUris }: RealmOptions
): Promise<void> => {
  await keycloak.admin("POST", "", {
    realm,
    enabled: true,
    clients: [
      server("bellcast", { secret: clientSecret }),
      server("bellcast-key", {
        clientAuthenticatorType: "client-jwt",
        attributes: {
          "use.jwks.string": "true",
          "jwks.string": JSON.stringify({ keys: [publicKey] })
        }
      }),
      page("page", ["bellcast"], {
        redirectUris,
        attributes: { "pkce.code.challenge.method": "S256" }
      }),
      page("page-key", ["bellcast-key"]),
      page("other", []),
      page("careless", ["bellcast"]),
      page("lightweight", ["bellcast"], {
        attributes: { "client.use.lightweight.access.token.enabled": "true" }
      }),
      page("short", ["bellcast"], { attributes: { "access.token.lifespan": `${shortSeconds}` } })
    ],
    roles: {
      realm: [{ name: "editor" }, { name: "chief editor" }],
      client: { bellcast: [{ name: "writer" }] }
    },
    users: [
      user("alice", ["editor"]),
      user("bob", []),
      { ...user("carol", ["chief editor"]), clientRoles: { bellcast: ["writer"] } }
    ]
  })
}
