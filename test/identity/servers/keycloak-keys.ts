// New keys of a realm: tokens by the former ones work while Keycloak publishes them.
import { expect, it } from "vitest"
import type { World } from "./keycloak-world.ts"
import { realm } from "./realm.ts"

interface Component {
  readonly id: string
  readonly providerId: string
  readonly config: Readonly<Record<string, ReadonlyArray<string>>>
}

/** "Add provider" of "Realm settings", "Keys", in the admin console. */
const providers = {
  ES256: { providerId: "ecdsa-generated", config: { ecdsaEllipticCurveKey: ["P-256"] } },
  EdDSA: { providerId: "eddsa-generated", config: { eddsaEllipticCurveKey: ["Ed25519"] } }
}

const algorithmOf = (token: string): unknown =>
  JSON.parse(Buffer.from(token.split(".")[0]!, "base64url").toString()).alg

/** Signs with a new key of this algorithm from now on. */
const rotate = async ({ keycloak }: World, algorithm: "ES256" | "EdDSA") => {
  const { config, providerId } = providers[algorithm]
  await keycloak.admin("POST", `/${realm}/components`, {
    name: algorithm,
    providerId,
    providerType: "org.keycloak.keys.KeyProvider",
    config: { ...config, priority: ["200"], enabled: ["true"], active: ["true"] }
  })
  await keycloak.admin("PUT", `/${realm}`, { defaultSignatureAlgorithm: algorithm })
}

const keyProvider = async ({ keycloak }: World, providerId: string): Promise<Component> => {
  const path = `/${realm}/components?type=org.keycloak.keys.KeyProvider`
  const all = (await keycloak.admin("GET", path)) as ReadonlyArray<Component>
  return all.find((component) => component.providerId === providerId)!
}

/** A token by a key that Bellcast does not know yet, believed: keys are fetched once in 10 s. */
const believed = async (world: World, algorithm: string): Promise<string> => {
  const { access_token: token } = await world.tokens("page", "alice")
  expect(algorithmOf(token)).toBe(algorithm)
  const timing = { timeout: 20_000, interval: 500 }
  await expect.poll(() => world.openid.statusOf(token), timing).toBe(200)
  expect(await world.oauth.statusOf(token)).toBe(200)
  return token
}

export const defineKeys = (world: () => World) => {
  it("ES256 and EdDSA are believed, the former keys until they are gone", async () => {
    const { keycloak, oauth, openid, tokens } = world()
    const { access_token: rs256 } = await tokens("page", "alice")
    expect(algorithmOf(rs256)).toBe("RS256")
    expect(await openid.statusOf(rs256)).toBe(200)
    await rotate(world(), "ES256")
    const es256 = await believed(world(), "ES256")
    expect(await openid.statusOf(rs256)).toBe(200)

    // "Disable" for one key, "Delete" for the other.
    const first = await keyProvider(world(), "rsa-generated")
    const config = { ...first.config, active: ["false"], enabled: ["false"] }
    await keycloak.admin("PUT", `/${realm}/components/${first.id}`, { ...first, config })
    const second = await keyProvider(world(), "ecdsa-generated")
    await keycloak.admin("DELETE", `/${realm}/components/${second.id}`)
    await rotate(world(), "EdDSA")
    const eddsa = await believed(world(), "EdDSA")
    // The keys are those of now, and verdicts by the former ones end with their lifetime.
    for (const token of [rs256, es256])
      for (const { statusOf } of [openid, oauth])
        await expect.poll(() => statusOf(token), { timeout: 10_000 }).toBe(401)
    expect(await openid.statusOf(eddsa)).toBe(200)
  }, 90_000)
}
