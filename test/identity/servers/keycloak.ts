// A real Keycloak on loopback, with a copy of the database that `make test-identity` has prepared,
// and its admin API.
import { existsSync } from "node:fs"
import { copyFile, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { claimPort } from "#test/ports.ts"
import { startProgram } from "./program.ts"

/** As in the Makefile. */
const folder = fileURLToPath(new URL("../../../.tools/keycloak/keycloak-26.4.2", import.meta.url))

/** Why the tests with Keycloak cannot run here. */
export const missingKeycloak: string | undefined = existsSync(`${folder}/prepared`)
  ? undefined
  : "Keycloak is missing: make test-identity fetches it with Maven and Java 17"

/** A start takes 9 s of CPU time. */
const startMillisMax = 180_000

/** Java compiles for a short life, in the memory that a small realm needs. */
const javaOptions = { JAVA_OPTS_APPEND: "-XX:TieredStopAtLevel=1", JAVA_OPTS_KC_HEAP: "-Xmx384m" }

type Json = Readonly<Record<string, unknown>>

export interface Tokens {
  readonly access_token: string
  readonly id_token: string
  readonly refresh_token: string
}

/** Disposing of it twice is fine. */
export interface Keycloak extends AsyncDisposable {
  readonly url: string
  /** A request of the admin API, such as `/site/users`; rejects unless it succeeds. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape
  readonly admin: (method: string, path: string, body?: unknown) => Promise<any>
  /** Tokens of a user, by a client that may log users in by password. */
  readonly tokens: (realm: string, client: string, user: string) => Promise<Tokens>
}

/** The password of every user, and the secret of every client. Form encoding changes the secret. */
export const password = "secret"
export const clientSecret = "a secret: 100%/+&="

const postForm = async (url: string, fields: Readonly<Record<string, string>>): Promise<Json> => {
  const response = await fetch(url, { method: "POST", body: new URLSearchParams(fields) })
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`)
  return (await response.json()) as Json
}

/** The admin API. A login for each request: tokens of the master realm last a minute. */
const adminOf =
  (url: string): Keycloak["admin"] =>
  async (method, path, body) => {
    const { access_token: token } = await postForm(
      `${url}/realms/master/protocol/openid-connect/token`,
      { grant_type: "password", client_id: "admin-cli", username: "admin", password: "admin" }
    )
    const response = await fetch(`${url}/admin/realms${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text === "" ? undefined : JSON.parse(text)
  }

export const startKeycloak = async (): Promise<Keycloak> => {
  const database = await mkdtemp(join(tmpdir(), "bellcast-keycloak-"))
  await copyFile(`${folder}/data/h2/keycloakdb.mv.db`, join(database, "keycloakdb.mv.db"))
  const port = await claimPort()
  const url = `http://127.0.0.1:${port}`
  const settings = {
    "http-enabled": "true",
    "http-host": "127.0.0.1",
    "http-port": port,
    hostname: url,
    cache: "local",
    "db-url": `jdbc:h2:file:${database}/keycloakdb;NON_KEYWORDS=VALUE`
  }
  const remove = () => rm(database, { recursive: true, force: true })
  const program = await startProgram({
    command: `${folder}/bin/kc.sh`,
    args: [
      "start",
      "--optimized",
      ...Object.entries(settings).map(([name, value]) => `--${name}=${value}`)
    ],
    env: javaOptions,
    isUp: async () => (await fetch(`${url}/realms/master`)).ok,
    startMillisMax
  }).catch(async (error) => {
    await remove()
    throw error
  })
  return {
    url,
    admin: adminOf(url),
    tokens: async (realm, client, username) =>
      (await postForm(`${url}/realms/${realm}/protocol/openid-connect/token`, {
        grant_type: "password",
        client_id: client,
        client_secret: clientSecret,
        username,
        password,
        scope: "openid"
      })) as unknown as Tokens,
    [Symbol.asyncDispose]: async () => {
      await program[Symbol.asyncDispose]()
      await remove()
    }
  }
}
