// A real Portier broker on loopback, which mails to a server of the test. `make test-identity`
// builds it.
import { existsSync, readFileSync } from "node:fs"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { claimPort } from "#test/ports.ts"
import { startProgram } from "./program.ts"

/** As in the Makefile. */
const folder = fileURLToPath(new URL("../../../.tools/portier/0.15.1", import.meta.url))

/** Why the tests with the broker cannot run here. */
export const missingBroker: string | undefined = existsSync(`${folder}/built`)
  ? undefined
  : `${folder} is missing: make test-identity builds it with cargo`

export interface Broker extends AsyncDisposable {
  readonly url: string
  readonly port: number
}

const readme = readFileSync(new URL("../../../src/identity/README.md", import.meta.url), "utf8")
const [, documented = ""] = /```toml\n(.*?)```/s.exec(readme) ?? []

/**
 * The settings of the README, on this machine. Addresses of example.org get a mail, those of
 * blocked.example an error.
 */
const configuration = (url: string, port: number, mailServer: string, algorithms: string) => {
  const here: Readonly<Record<string, string>> = {
    public_url: `"${url}"`,
    listen_port: `${port}`,
    smtp_server: `"${mailServer}"`,
    data_dir: `"${folder}"`,
    signing_algs: algorithms
  }
  const settings = documented
    .replace(/^allowed_origins = .*\n/m, "")
    .replace(/^sqlite_db = .*$/m, "memory_storage = true")
    .replace(/^(\w+) = .*$/gm, (line, name: string) =>
      here[name] === undefined ? line : `${name} = ${here[name]}`
    )
  // Else the broker looks for a login of the domain on the internet.
  const overrides = 'domain_overrides = { "example.org" = [] }'
  return `${settings}blocked_domains = ["blocked.example"]\n${overrides}\n`
}

/**
 * Each broker has keys of its own. `port`: that of a broker which has ended. `algorithms`: those
 * that it signs with.
 */
export const startBroker = async (
  mailServer: string,
  port?: number,
  algorithms: ReadonlyArray<string> = ["RS256", "EdDSA"]
): Promise<Broker> => {
  const own = port ?? (await claimPort())
  const url = `http://127.0.0.1:${own}`
  const temporary = await mkdtemp(join(tmpdir(), "bellcast-"))
  const file = join(temporary, "broker.toml")
  await writeFile(file, configuration(url, own, mailServer, JSON.stringify(algorithms)))
  const program = await startProgram({
    command: `${folder}/bin/portier-broker`,
    args: [file],
    isUp: async () => (await fetch(`${url}/ver.txt`)).ok,
    startMillisMax: 60_000
  })
  return {
    url,
    port: own,
    [Symbol.asyncDispose]: async () => {
      await program[Symbol.asyncDispose]()
      await rm(temporary, { recursive: true, force: true })
    }
  }
}
