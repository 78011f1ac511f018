// The policies openid and oauth beside a real Keycloak.
import { describe, expect, it } from "vitest"
import { missingKeycloak, startKeycloak } from "./keycloak.ts"

if (missingKeycloak !== undefined) process.stderr.write(`tests are skipped: ${missingKeycloak}\n`)

describe.skipIf(missingKeycloak !== undefined)("Keycloak", () => {
  it("starts", { timeout: 400_000 }, async () => {
    await using keycloak = await startKeycloak()
    const response = await fetch(`${keycloak.url}/realms/master/.well-known/openid-configuration`)
    const { issuer } = (await response.json()) as { issuer: string }
    expect(issuer).toBe(`${keycloak.url}/realms/master`)
  })
})
