// A real Keycloak on loopback, with a database in memory. `make test-identity` fetches it.
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { freePort } from "#test/service.ts"
import { startProgram } from "./program.ts"

/** As in the Makefile. */
const folder = fileURLToPath(new URL("../../.tools/keycloak/keycloak-26.4.2", import.meta.url))

/** Why the tests with Keycloak cannot run here. */
export const missingKeycloak: string | undefined = existsSync(`${folder}/built`)
  ? undefined
  : `${folder} is missing: make test-identity fetches it with Maven and Java 17`

/** On two idle cores a start takes 10 s, beside other tests a minute. */
const startMillisMax = 300_000

export interface Keycloak extends AsyncDisposable {
  readonly url: string
}

export const startKeycloak = async (): Promise<Keycloak> => {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const program = await startProgram({
    command: `${folder}/bin/kc.sh`,
    args: [
      "start",
      "--optimized",
      "--http-enabled=true",
      "--http-host=127.0.0.1",
      `--http-port=${port}`,
      `--hostname=${url}`,
      "--cache=local"
    ],
    env: { KC_BOOTSTRAP_ADMIN_USERNAME: "admin", KC_BOOTSTRAP_ADMIN_PASSWORD: "admin" },
    isUp: async () => (await fetch(`${url}/realms/master`)).ok,
    startMillisMax
  })
  return { url, [Symbol.asyncDispose]: () => program[Symbol.asyncDispose]() }
}
