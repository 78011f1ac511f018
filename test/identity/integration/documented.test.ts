// The settings and the requests of the documents work: a service starts with the settings as they
// stand there, in front of providers of the test, and each request as it stands there succeeds.
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Folder, makeFolder } from "#test/folder.ts"
import { keep } from "#test/identity/cookies.ts"
import { blocksOf, requestsIn, sectionsOf, settingsIn } from "#test/identity/document.ts"
import { type IdentityProvider, startIdentityProvider } from "#test/identity/provider.ts"
import { startNats, type TestNats } from "#test/nats.ts"
import { claimPort } from "#test/ports.ts"
import { type Service, startService } from "#test/service.ts"

const sections = sectionsOf("src/identity/README.md")
const sectionOf = (heading: string) => sections.get(heading) ?? expect.fail(`no ${heading}`)
const cli = fileURLToPath(new URL("../../../src/cli/main.ts", import.meta.url))
const secret = "a-secret-of-more-than-thirty-two-bytes"

let nats: TestNats
let service: Service
/** Introspection, the verify call, the broker. */
let asked: IdentityProvider
let issuer: IdentityProvider
let folder: Folder
let settings: Readonly<Record<string, string>>

/** The text with the addresses of the test. */
const here = (text: string, port: number): string =>
  text
    .replaceAll("https://login.example.org/realms/site", issuer.url)
    .replaceAll("https://login.example.org/introspect", `${asked.url}/introspect`)
    .replaceAll("https://accounts.example.org", asked.url)
    .replaceAll("https://broker.portier.io", asked.url)
    .replaceAll("https://push.example.org", `http://127.0.0.1:${port}`)
    .replaceAll("10.0.0.7", "127.0.0.1")

/** The settings of a section as they stand there, with secrets. `suffix`: of the policy's name. */
const documented = (heading: string, block: number, port: number, suffix = "") => {
  const found = settingsIn(sectionOf(heading))[block] ?? expect.fail(`no settings: ${heading}`)
  const pairs = Object.entries(found).map(([name, value]) => {
    const own = suffix === "" ? name : name.replace("_OAUTH_", `_OAUTH_${suffix}_`)
    return [own, value === "..." ? secret : here(value, port)] as const
  })
  return Object.fromEntries(pairs)
}

/** All blocks in one: each policy has settings of its own. */
const merged = (port: number) => {
  const blocks = [
    documented("openid", 0, port),
    documented("Login pages", 0, port),
    documented("oauth", 0, port),
    { ...documented("oauth", 1, port, "ACCOUNTS"), BELLCAST_AUTH_POLICIES: "oauth-accounts" },
    documented("signed", 0, port),
    documented("proxy", 0, port),
    documented("token", 0, port),
    documented("portier", 0, port),
    documented("basicauth", 0, port),
    documented("A policy of your own", 0, port)
  ]
  const policies = blocks.flatMap((block) => block["BELLCAST_AUTH_POLICIES"]?.split(" ") ?? [])
  return {
    ...Object.assign({}, ...blocks),
    BELLCAST_AUTH_POLICIES: [...new Set(policies)].join(" "),
    // Browsers reach this server without TLS.
    BELLCAST_HTTP_SCHEME: "http",
    BELLCAST_HTTP_HOST: `127.0.0.1:${port}`
  }
}

beforeAll(async () => {
  const port = await claimPort()
  const [module = ""] = blocksOf(sectionOf("A policy of your own"), "js")
  ;[nats, asked, issuer, folder] = await Promise.all([
    startNats(),
    startIdentityProvider(),
    startIdentityProvider(),
    makeFolder({ "acme-policy.js": module, "package.json": '{"type":"module"}' })
  ])
  settings = merged(port)
  const roles = "gateway,projection,fanout"
  service = await startService({ natsUrl: nats.url, port, roles, cwd: folder.path, env: settings })
})
afterAll(async () => {
  await service.stop()
  await Promise.all([asked, issuer, nats, folder].map((each) => each[Symbol.asyncDispose]()))
})

const page = "https://app.example.org/#token="

/** A session by a login in a browser, as the section says. */
const portierSession = async () => {
  const cookies = new Map<string, string>()
  const login = await fetch(`${service.url}/portier/login`, {
    method: "POST",
    redirect: "manual",
    headers: { origin: new URL(page).origin },
    body: new URLSearchParams({ email: "anna@example.org", redirect: page })
  })
  const begun = keep(login, cookies)
  const nonce = new URL(begun).searchParams.get("nonce")
  const aud = new URL(service.url).origin
  const claims = { aud, sub: "anna@example.org", iat: Math.floor(Date.now() / 1000), nonce }
  const returned = await fetch(`${service.url}/portier/verify`, {
    method: "POST",
    redirect: "manual",
    headers: { cookie: [...cookies].map((pair) => pair.join("=")).join("; ") },
    body: new URLSearchParams({ id_token: await asked.token(claims, { typ: undefined }) })
  })
  return returned.headers.get("location")!.slice(page.length)
}

/** Runs the request of a section in a shell. Returns the last status. */
const statusOf = async (heading: string, variables: Readonly<Record<string, string>>) => {
  const [command = "", ...others] = requestsIn(sectionOf(heading))
  expect(others, heading).toEqual([])
  const script = [
    `bellcast() { "${process.execPath}" "${cli}" "$@"; }`,
    "curl() { command curl -s -o /dev/null -w '%{http_code}' \"$@\"; }",
    here(command, service.port)
  ].join("\n")
  const env = { ...process.env, ...settings, BELLCAST_NATS_URL: nats.url, ...variables }
  const { stdout } = await promisify(execFile)("sh", ["-c", script], { env, cwd: folder.path })
  return stdout.trim()
}

describe("the settings and the request of the section", () => {
  const variables: Readonly<Record<string, () => Promise<Record<string, string>>>> = {
    openid: async () => ({ TOKEN: await issuer.token({ realm_access: { roles: ["editor"] } }) }),
    oauth: async () => {
      asked.tokens.set("opaque", { active: true, sub: "anna", aud: "bellcast", scope: "push" })
      return { TOKEN: "opaque" }
    },
    signed: async () => ({}),
    proxy: async () => ({ SECRET: secret }),
    portier: async () => ({ TOKEN: await portierSession() }),
    basicauth: async () => ({}),
    "A policy of your own": async () => ({})
  }
  for (const [heading, variablesOf] of Object.entries(variables))
    it(`"${heading}" work`, async () => {
      expect(await statusOf(heading, await variablesOf())).toBe("200")
    })

  it(`"token" work`, async () => {
    expect(await statusOf("token", {})).toBe("202")
  })

  it(`"oauth" work with the verify call, too`, async () => {
    asked.tokens.set("account", { user: "anna", client_id: "c", scope: ["push"] })
    expect(await statusOf("oauth", { TOKEN: "account" })).toBe("200")
  })

  it(`"Login pages" send a browser to the issuer, and back to the registered address`, async () => {
    const spans = [...sectionOf("Login pages").matchAll(/`(https:\/\/push\.example\.org[^`]+)`/g)]
    const [redirectUri, link] = spans.map(([, span]) => here(span!, service.port))
    const response = await fetch(link!, { redirect: "manual" })
    expect(response.status).toBe(307)
    const location = new URL(response.headers.get("location")!)
    expect(location.href.startsWith(`${issuer.url}/auth?`)).toBe(true)
    expect(location.searchParams.get("client_id")).toBe("push-pages")
    expect(location.searchParams.get("redirect_uri")).toBe(redirectUri)
  })
})
