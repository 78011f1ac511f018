// A Portier broker that the test plays, a service that believes it, and a browser between them.
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect } from "vitest"
import { type IdentityProvider, startIdentityProvider } from "./identity-provider.ts"
import { freePort, type Service, startService } from "./service.ts"

/** The page to which logins return. */
export const page = "https://app.example.org/inbox#token="

/** A browser that began a login. */
export interface Begun {
  readonly response: Response
  /** The broker's page. */
  readonly url: URL
  readonly cookie: string
  readonly nonce: string
}

type Members = Readonly<Record<string, unknown>>

export interface Portier extends AsyncDisposable {
  readonly broker: IdentityProvider
  readonly service: Service
  /** The folder of the service, with the embedded nats-server. */
  readonly folder: string
  readonly origin: string
  readonly begin: (email?: string, redirect?: string) => Promise<Response>
  readonly begun: (email?: string) => Promise<Begun>
  /** What the broker gives a browser that has proven its address. */
  readonly proof: (nonce: string, claims?: Members, header?: Members) => Promise<string>
  /** The browser returns from the broker with a form. */
  readonly verify: (cookie: string, fields: Readonly<Record<string, string>>) => Promise<Response>
  /** The token of a session. */
  readonly loggedIn: (email?: string) => Promise<string>
}

export const seconds = () => Math.floor(Date.now() / 1000)

export const cookieIn = (response: Response) =>
  response.headers.get("set-cookie")?.split(";")[0] ?? ""

export const tokenIn = (response: Response) => response.headers.get("location")!.slice(page.length)

/** Status, code and errno of an error. */
export const errorOf = async (response: Response) => {
  const { code, errno } = (await response.json()) as { code: number; errno: number }
  return [response.status, code, errno]
}

/** The login pages, as a browser uses them. */
const browserOf = (url: string, origin: string, broker: IdentityProvider) => {
  const begin: Portier["begin"] = (email = "Anna@Example.org", redirect = page) =>
    fetch(`${url}/portier/login?${new URLSearchParams({ email, redirect })}`, {
      redirect: "manual"
    })
  const begun: Portier["begun"] = async (email) => {
    const response = await begin(email)
    expect(response.status).toBe(302)
    const to = new URL(response.headers.get("location")!)
    return { response, url: to, cookie: cookieIn(response), nonce: to.searchParams.get("nonce")! }
  }
  const proof: Portier["proof"] = (nonce, claims = {}, header = { typ: undefined }) => {
    const said = { sub: "anna@example.org", iat: seconds(), email_verified: true }
    return broker.token({ aud: origin, ...said, nonce, ...claims }, header)
  }
  const verify: Portier["verify"] = (cookie, fields) =>
    fetch(`${url}/portier/verify`, {
      method: "POST",
      redirect: "manual",
      headers: { cookie, origin: broker.url, "sec-fetch-site": "cross-site" },
      body: new URLSearchParams(fields)
    })
  const loggedIn: Portier["loggedIn"] = async (email = "anna@example.org") => {
    const { cookie, nonce } = await begun(email)
    const response = await verify(cookie, { id_token: await proof(nonce, { sub: email }) })
    expect(response.status).toBe(302)
    return tokenIn(response)
  }
  return { begin, begun, proof, verify, loggedIn }
}

/** With an embedded nats-server, so that the test can read its files. */
export const startPortier = async (): Promise<Portier> => {
  const folder = await mkdtemp(join(tmpdir(), "bellcast-"))
  const broker = await startIdentityProvider({
    id_token_signing_alg_values_supported: ["RS256", "EdDSA"],
    accepts_id_token_signing_alg_query_param: true
  })
  await broker.rotate("EdDSA", "second", { keeps: true })
  const port = await freePort()
  const service = await startService({
    cwd: folder,
    port,
    env: {
      BELLCAST_AUTH_POLICIES: "portier",
      BELLCAST_HTTP_SCHEME: "http",
      BELLCAST_HTTP_HOST: `127.0.0.1:${port}`,
      BELLCAST_AUTH_PORTIER_BROKER_URL: `${broker.url}/`,
      BELLCAST_AUTH_PORTIER_REDIRECT_HOSTS: "app.example.org",
      BELLCAST_AUTH_PORTIER_LOGINS_PER_CLIENT_PER_HOUR_MAX: "0",
      BELLCAST_AUTH_PORTIER_LOGINS_PER_ADDRESS_PER_HOUR_MAX: "40",
      BELLCAST_CORS_ORIGINS: "https://app.example.org"
    }
  })
  const origin = `http://127.0.0.1:${port}`
  return {
    ...browserOf(service.url, origin, broker),
    broker,
    service,
    folder,
    origin,
    [Symbol.asyncDispose]: async () => {
      await service.stop()
      await broker[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
    }
  }
}
