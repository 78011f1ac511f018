// With each policy as the only one: the files of the conformance tests that start gateways of their
// own, with settings, on the wire, in trouble, and for clients.
import { describe } from "vitest"
import { testGeneratedClient } from "../../conformance/flows/generated-client.ts"
import { testImports } from "../../conformance/flows/imports.ts"
import { testKintoClient } from "../../conformance/flows/kinto-client.ts"
import { testSettings } from "../../conformance/flows/settings.ts"
import { testTrouble } from "../../conformance/flows/trouble.ts"
import { testWire } from "../../conformance/flows/wire.ts"
import { logins } from "../../conformance/logins/all.ts"

for (const login of logins) {
  describe(login.name, () => {
    describe("by gateways with settings", () => testSettings(login))
    describe("bytes on a connection", () => testWire(login))
    describe("in trouble", () => testTrouble(login))
    describe("imported subscriptions", () => testImports(login))
    describe("kinto-http", () => testKintoClient(login))
    describe("a generated client", () => testGeneratedClient(login))
  })
}
