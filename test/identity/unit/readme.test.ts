// The settings that the documents about identity show are complete, and read the tokens of Auth0
// and Entra as these vendors document them.
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { hasNonceOfIdToken, openidSettings, openidVerdict } from "#identity/policies/openid.ts"
import { settingPrefix } from "#identity/settings.ts"
import { claimsOf } from "#identity/tokens/jwt.ts"
import { everySetting } from "#settings/every-setting.ts"
import { layerOf, readSource } from "#settings/source.ts"
import { requestsIn, sectionsOf, settingsIn } from "#test/identity/document.ts"
import { checkSettings } from "../../../src/failed-start.ts"

const policies = sectionsOf("src/identity/README.md")
const examples = sectionsOf("src/identity/policies/README.md")
const secret = "a-secret-of-more-than-thirty-two-bytes"

type Environment = Readonly<Record<string, string>>

const sourceOf = (block: Environment) => {
  const values = Object.entries(block).map(([name, value]) => [name, value.replace("...", secret)])
  return readSource({ BELLCAST_CONFIG: "/dev/null", ...Object.fromEntries(values) })
}

describe("a block of settings", () => {
  const all = [...policies, ...examples].flatMap(([heading, section]) =>
    settingsIn(section).map((block) => [heading, block] as const)
  )
  const [openid = {}] = settingsIn(policies.get("openid")!)
  /** The settings beside those of a section. */
  const beside: Readonly<Record<string, Environment>> = { "Login pages": openid, token: openid }

  it("stands in each section of a policy, with a request", () => {
    for (const heading of ["openid", "oauth", "signed", "proxy", "token", "portier", "basicauth"]) {
      assert.isNotEmpty(settingsIn(policies.get(heading)!), heading)
      assert.isNotEmpty(requestsIn(policies.get(heading)!), heading)
    }
  })

  for (const [heading, block] of all)
    it(`of "${heading}" is complete and right`, async () => {
      const source = sourceOf({ ...beside[heading], ...block })
      await Effect.runPromise(checkSettings.pipe(Effect.provide(layerOf(source))))
    })
})

const now = Date.parse("2026-11-22T12:00:00Z")
const seconds = now / 1000
const times = { iat: seconds - 60, nbf: seconds - 60, exp: seconds + 3_540 }

const tokenOf = (claims: object, typ: string) =>
  [{ alg: "RS256", typ, kid: "k" }, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
    .concat("signature")
    .join(".")

/** The verdict of the policy with the settings of a section. */
const verdictOf = async (heading: string, claims: object, { more = {}, typ = "JWT" } = {}) => {
  const block = { ...settingsIn(examples.get(heading)!)[0]!, ...more }
  const settings = await Effect.runPromise(
    everySetting(openidSettings(settingPrefix("openid"))).pipe(
      Effect.provide(layerOf(sourceOf(block)))
    )
  )
  const token = tokenOf(claims, typ)
  if (hasNonceOfIdToken(claimsOf(token)!, token)) return "ID token"
  const verdict = openidVerdict(claimsOf(token)!, settings, now)
  return verdict._tag === "Known" ? [verdict.user, verdict.groups] : verdict.error
}

describe("a token of Auth0", () => {
  const api = "https://push.example.org"
  /** The profile `access_token_authz`. */
  const claims = {
    iss: "https://TENANT.auth0.com/",
    sub: "auth0|6553da60a54af58e29493993",
    aud: [api, "https://TENANT.auth0.com/userinfo"],
    azp: "K1AUPhZq8mRi0Q0pjhkfu1D7y6KjDQja",
    iat: times.iat,
    exp: times.exp,
    scope: "openid profile email",
    permissions: ["push:publish"]
  }

  it("is read with its permissions, in both profiles", async () => {
    const user = ["auth0|6553da60a54af58e29493993", ["push:publish"]]
    assert.deepEqual(await verdictOf("Auth0", claims), user)
    const { azp: client_id, ...rest } = claims
    const rfc9068 = { ...rest, client_id, jti: "73WakrfVbNJBaAmhQtEeDv" }
    assert.deepEqual(await verdictOf("Auth0", rfc9068, { typ: "at+jwt" }), user)
  })

  it("of a server is read, too", async () => {
    const sub = "awZfdIir8YFdGZWkvCejDoUb7SjTDicx@clients"
    const { scope: _, ...rest } = { ...claims, sub, aud: api, gty: "client-credentials" }
    assert.deepEqual(await verdictOf("Auth0", rest), [sub, ["push:publish"]])
  })

  it("is read with roles in a claim whose name is a URL", async () => {
    const more = { BELLCAST_AUTH_OPENID_GROUP_FIELDS: `${api}/roles` }
    const roles = { ...claims, [`${api}/roles`]: ["editor"] }
    assert.deepEqual(await verdictOf("Auth0", roles, { more }), [claims.sub, ["editor"]])
  })

  it("is refused when it is an ID token, or for another API or tenant", async () => {
    for (const wrong of [
      { aud: claims.azp, email: "a@example.org", email_verified: true, at_hash: "x" },
      { aud: claims.azp },
      { aud: ["https://TENANT.auth0.com/userinfo"] },
      { iss: "https://other.auth0.com/" },
      { iss: "https://TENANT.auth0.com" }
    ])
      assert.strictEqual(await verdictOf("Auth0", { ...claims, ...wrong }), "invalid_token")
  })
})

describe("a token of Entra", () => {
  /** Version 2.0, with the names that the document writes for the GUIDs. */
  const claims = {
    aud: "APPLICATION_ID",
    iss: "https://login.microsoftonline.com/TENANT_ID/v2.0",
    ...times,
    aio: "AXQAi/8TAAAA",
    azp: "6e74172b-be56-4843-9ff4-e66a39bb12e3",
    azpacr: "0",
    name: "Anna Example",
    oid: "690222be-ff1a-4d56-abd1-7e4f7d38e474",
    preferred_username: "anna@example.org",
    rh: "0.AAAA",
    roles: ["editor"],
    scp: "push",
    sub: "HKZpfaHyWadeOouYlitjrI-KffTm222X5rrV3xDqfKQ",
    tid: "TENANT_ID",
    uti: "fqiBqXLPj0eQa82S-IYFAA",
    ver: "2.0",
    wids: ["b79fbf4d-3ef9-4689-8143-76b194e85509"]
  }

  it("is read with its roles, by sub or by oid", async () => {
    assert.deepEqual(await verdictOf("Entra", claims), [claims.sub, ["editor"]])
    const more = { BELLCAST_AUTH_OPENID_USERID_FIELD: "oid" }
    assert.deepEqual(await verdictOf("Entra", claims, { more }), [claims.oid, ["editor"]])
  })

  it("has no groups when it names too many of them elsewhere", async () => {
    const more = { BELLCAST_AUTH_OPENID_GROUP_FIELDS: "groups" }
    const overage = {
      ...claims,
      _claim_names: { groups: "src1" },
      _claim_sources: { src1: { endpoint: "https://graph.windows.net/..." } }
    }
    assert.deepEqual(await verdictOf("Entra", overage, { more }), [claims.sub, []])
  })

  it("is refused when it is an ID token, of an application, or of version 1", async () => {
    const { roles: _, scp: __, ...id } = claims
    assert.strictEqual(await verdictOf("Entra", id), "insufficient_scope")
    assert.strictEqual(await verdictOf("Entra", { ...id, nonce: "n" }), "ID token")
    const { scp: ___, ...application } = { ...claims, idtyp: "app" }
    assert.strictEqual(await verdictOf("Entra", application), "insufficient_scope")
    const first = { iss: "https://sts.windows.net/TENANT_ID/", aud: "api://APPLICATION_ID" }
    assert.strictEqual(await verdictOf("Entra", { ...claims, ...first }), "invalid_token")
  })
})
