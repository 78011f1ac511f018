// The policy proxy behind a real oauth2-proxy, with its configuration and command as they stand in
// the document, in front of a certified issuer.
import { existsSync } from "node:fs"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { follow, get, keep } from "#test/identity/cookies.ts"
import { blocksOf, sectionsOf, settingsIn } from "#test/identity/document.ts"
import { clientSecret, type OidcProvider, startOidcProvider } from "#test/identity/oidc-provider.ts"
import { startNats, type TestNats } from "#test/nats.ts"
import { claimPort } from "#test/ports.ts"
import { type Service, startService } from "#test/service.ts"
import { type Program, startProgram } from "./program.ts"

const program = fileURLToPath(
  new URL("../../../.tools/oauth2-proxy/7.8.1/oauth2-proxy", import.meta.url)
)
const isMissing = !existsSync(program)
if (isMissing)
  process.stderr.write("skipped: oauth2-proxy is missing: make test-identity builds it with Go\n")

const section = sectionsOf("src/identity/policies/README.md").get("oauth2-proxy")!
const proxySecret = "a-secret-of-the-proxy-of-thirty-two-bytes"

let nats: TestNats
let issuer: OidcProvider
let service: Service
let proxy: Program | undefined
let folder: string
let url: string

/** Starts oauth2-proxy as the section says, by http and with the addresses of the test. */
const startProxy = async (port: number): Promise<Program> => {
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
  return startProgram({ command: "sh", args: ["-c", script], isUp, startMillisMax: 20_000 })
}

const startAll = async () => {
  const port = await claimPort()
  url = `http://127.0.0.1:${port}`
  ;[nats, issuer, folder] = await Promise.all([
    startNats(),
    startOidcProvider([`${url}/oauth2/callback`]),
    mkdtemp(join(tmpdir(), "bellcast-"))
  ])
  const settings = {
    ...settingsIn(section)[0]!,
    BELLCAST_AUTH_PROXY_SECRET: proxySecret,
    BELLCAST_CORS_ORIGINS: url,
    BELLCAST_HTTP_SCHEME: "http",
    BELLCAST_HTTP_HOST: new URL(url).host
  }
  const roles = "gateway,projection,fanout"
  service = await startService({ natsUrl: nats.url, roles, env: settings })
  proxy = await startProxy(port)
}

const stopAll = async () => {
  await proxy?.[Symbol.asyncDispose]()
  await service.stop()
  await Promise.all([issuer, nats].map((each) => each[Symbol.asyncDispose]()))
  await rm(folder, { recursive: true, force: true })
}

/** The cookies of a browser that has logged in. */
const loggedIn = async () => {
  const cookies = new Map<string, string>()
  const toIssuer = await follow(`${url}/oauth2/start?rd=/v1/`, url, cookies)
  const back = await follow(toIssuer.href, issuer.issuer, cookies)
  keep(await get(back.href, cookies), cookies)
  return `_oauth2_proxy=${cookies.get("_oauth2_proxy")}`
}

const send = (headers: Readonly<Record<string, string>>, path: string, method = "GET") =>
  fetch(`${url}/v1${path}`, { method, headers, redirect: "manual" })

describe.skipIf(isMissing)("behind oauth2-proxy", () => {
  let cookie: string
  beforeAll(async () => {
    await startAll()
    cookie = await loggedIn()
  })
  afterAll(stopAll)

  it("a user who logged in has the id and the groups of the issuer", async () => {
    const root = await send({ cookie }, "/")
    expect(await root.json()).toMatchObject({
      user: {
        id: "proxy:alice",
        principals: expect.arrayContaining(["group:proxy:editor", "group:proxy:staff"])
      }
    })
  })

  it("registers, and publishes by a group", async () => {
    expect((await send({ cookie }, "/subscriptions")).status).toBe(200)
    expect((await send({ cookie }, "/channels/news/registration", "PUT")).status).toBe(202)
    const published = await send({ cookie }, "/channels/news", "POST")
    expect(published.status).toBe(202)
    expect(published.headers.get("location")?.startsWith(`${url}/v1/channels/news/`)).toBe(true)
  })

  it("nobody is another user by a header of his own", async () => {
    const headers = { "x-forwarded-user": "root", "x-forwarded-groups": "admin" }
    expect(await (await send({ ...headers, cookie }, "/")).json()).toMatchObject({
      user: { id: "proxy:alice" }
    })
    expect((await send(headers, "/subscriptions")).status).toBe(401)
    const direct = await fetch(`${service.url}/subscriptions`, { headers })
    expect(direct.status).toBe(401)
  })

  it("no page of another site uses the cookie, and no script is sent to a login", async () => {
    const headers = { cookie, "sec-fetch-site": "cross-site", origin: "https://evil.example" }
    expect((await send(headers, "/channels/news/registration", "PUT")).status).toBe(400)
    expect((await send({}, "/subscriptions")).status).toBe(401)
  })
})
