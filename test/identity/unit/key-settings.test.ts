// Keys that stand in a setting instead of the path of their file are not shown.
import { generateKeyPairSync } from "node:crypto"
import { Effect, Option } from "effect"
import { expect, it } from "vitest"
import { signed } from "#identity/policies/signed.ts"
import { makeClientLogin } from "#identity/provider/client.ts"

const pem = generateKeyPairSync("ed25519")
  .privateKey.export({ type: "pkcs8", format: "pem" })
  .toString()
const [, secret = ""] = pem.split("\n")

it("names the setting of a private key, and not its value", async () => {
  const settings = {
    clientId: Option.some("bellcast"),
    clientSecret: Option.none(),
    clientKeyFile: Option.some(pem)
  }
  const login = makeClientLogin("oauth", "BELLCAST_AUTH_OAUTH", "https://a.example.org", settings)
  const { message } = await Effect.runPromise(Effect.flip(login))
  expect(message).toMatch(/BELLCAST_AUTH_OAUTH_CLIENT_KEY_FILE: Expected the path/)
  expect(message).not.toContain(secret)
})

it("names the setting of a public key, and not its value", async () => {
  const settings = {
    secrets: Option.none(),
    publicKeyFiles: pem.split(/\s+/).filter((word) => word !== ""),
    audience: ["bellcast"]
  }
  const made = signed("signed", settings) as unknown as ReturnType<typeof makeClientLogin>
  const { message } = await Effect.runPromise(Effect.flip(made))
  expect(message).toMatch(/BELLCAST_AUTH_SIGNED_PUBLIC_KEY_FILES \(item 1\): Expected the path/)
  expect(message).not.toContain(secret)
})
