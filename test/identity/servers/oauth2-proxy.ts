// A real oauth2-proxy in front of a service, with its configuration and command as they stand in
// the document, and a certified issuer behind it.
import { existsSync } from "node:fs"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { blocksOf, sectionsOf, settingsIn } from "#test/identity/document.ts"
import { clientSecret, type OidcProvider, startOidcProvider } from "#test/identity/oidc-provider.ts"
import { startNats } from "#test/nats.ts"
import { claimPort } from "#test/ports.ts"
import { type Service, startService } from "#test/service.ts"
import { type Program, startProgram } from "./program.ts"

const program = fileURLToPath(
  new URL("../../../.tools/oauth2-proxy/7.8.1/oauth2-proxy", import.meta.url)
)
/** The program that is missing here; undefined: none. */
export const missingProxy = existsSync(program)
  ? undefined
  : "oauth2-proxy is missing: make test-identity builds it with Go"

const section = sectionsOf("src/identity/policies/README.md").get("oauth2-proxy")!
const proxySecret = "a-secret-of-the-proxy-of-thirty-two-bytes"

interface Place {
  readonly folder: string
  readonly port: number
  readonly issuer: OidcProvider
  readonly service: Service
}

/** As the section says, by http and with the addresses of the test. */
const startProxy = async ({ folder, issuer, port, service }: Place): Promise<Program> => {
  const [yaml] = blocksOf(section, "yaml")
  const command = blocksOf(section, "sh").find((block) => block.startsWith("export "))
  const configuration = yaml!
    .replace("127.0.0.1:4180", `127.0.0.1:${port}`)
    .replace("push-proxy", "page")
    .replace("https://login.example.org/realms/site", issuer.issuer)
    .replace("http://127.0.0.1:9999", `http://127.0.0.1:${service.port}`)
  await writeFile(join(folder, "oauth2-proxy.yaml"), configuration)
  const script = command!
    .replace("CLIENT_SECRET=...", `CLIENT_SECRET='${clientSecret}'`)
    .replace("PROXY_SECRET=...", `PROXY_SECRET=${proxySecret}`)
    .replace("https://push.example.org", `http://127.0.0.1:${port}`)
    .replace("\noauth2-proxy", `\ncd ${folder}; exec ${program} --cookie-secure=false`)
  const isUp = async () => (await fetch(`http://127.0.0.1:${port}/ping`)).ok
  return startProgram({ command: "sh", args: ["-c", script], isUp, startMillisMax: 60_000 })
}

/** `more`: settings beside those of the section, by the origin of the proxy. */
export const startBehindProxy = async (
  opened: AsyncDisposableStack,
  more: (url: string) => Readonly<Record<string, string>> = () => ({})
) => {
  const port = await claimPort()
  const url = `http://127.0.0.1:${port}`
  const nats = opened.use(await startNats())
  const issuer = opened.use(await startOidcProvider([`${url}/oauth2/callback`]))
  const folder = await mkdtemp(join(tmpdir(), "bellcast-"))
  opened.defer(() => rm(folder, { recursive: true, force: true }))
  const env = {
    ...settingsIn(section)[0]!,
    BELLCAST_AUTH_PROXY_SECRET: proxySecret,
    BELLCAST_CORS_ORIGINS: url,
    BELLCAST_HTTP_SCHEME: "http",
    BELLCAST_HTTP_HOST: new URL(url).host,
    ...more(url)
  }
  const roles = "gateway,projection,fanout"
  const service = await startService({ natsUrl: nats.url, roles, env })
  opened.defer(async () => void (await service.stop()))
  opened.use(await startProxy({ folder, port, issuer, service }))
  return { url, issuer, service }
}
