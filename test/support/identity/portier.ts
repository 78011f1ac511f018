// A Portier broker that the test plays, a service that believes it, and a browser between them.
import { expect } from "vitest"
import { startNats } from "../nats.ts"
import { claimPort } from "../ports.ts"
import { type Service, type ServiceOptions, startService } from "../service.ts"
import { type IdentityProvider, startIdentityProvider } from "./provider.ts"

/** The page to which logins return. */
export const page = "https://app.example.org/inbox#token="

/** What a browser sends with a form of that page. */
export const fromPage = { origin: "https://app.example.org", "sec-fetch-site": "cross-site" }

/** A browser that began a login. */
export interface Begun {
  readonly response: Response
  /** The broker's page. */
  readonly url: URL
  readonly cookie: string
  readonly nonce: string
}

type Members = Readonly<Record<string, unknown>>

/** A gateway and its login pages, as a browser uses them. */
export interface PortierGateway {
  readonly service: Service
  readonly begin: (
    email?: string,
    redirect?: string,
    headers?: Readonly<Record<string, string>>
  ) => Promise<Response>
  readonly begun: (email?: string) => Promise<Begun>
  /** The response of the broker to a browser that has proven its address. */
  readonly proof: (nonce: string, claims?: Members, header?: Members) => Promise<string>
  /** The browser returns from the broker with a form. Errors are JSON unless `accept` is set. */
  readonly verify: (
    cookie: string,
    fields: Readonly<Record<string, string>>,
    accept?: string
  ) => Promise<Response>
  /** The token of a session. */
  readonly loggedIn: (email?: string) => Promise<string>
}

export interface Portier extends PortierGateway, AsyncDisposable {
  readonly broker: IdentityProvider
  readonly origin: string
  /** Starts another gateway for the same origin. */
  readonly another: (env: Readonly<Record<string, string>>) => Promise<PortierGateway>
}

export const seconds = () => Math.floor(Date.now() / 1000)

export const cookieIn = (response: Response) =>
  response.headers.get("set-cookie")?.split(";")[0] ?? ""

export const tokenIn = (response: Response) => response.headers.get("location")!.slice(page.length)

/** What browsers accept when they open a page. */
export const acceptPage = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

/** Status, code and error code of an error. */
export const errorOf = async (response: Response) => {
  const { code, error_code } = (await response.json()) as { code: number; error_code: string }
  return [response.status, code, error_code]
}

const gatewayOf = (service: Service, origin: string, broker: IdentityProvider): PortierGateway => {
  const { url } = service
  const begin: PortierGateway["begin"] = (
    email = "Anna@Example.org",
    redirect = page,
    headers = {}
  ) =>
    fetch(`${url}/portier/login`, {
      method: "POST",
      redirect: "manual",
      headers: { ...fromPage, ...headers },
      body: new URLSearchParams({ email, redirect })
    })
  let browsers = 0
  const begun: PortierGateway["begun"] = async (email) => {
    // Where this proxy is trusted, each browser is a client: the logins of one are limited.
    browsers += 1
    const headers = { "x-forwarded-for": `198.51.100.${browsers}` }
    const response = await begin(email, page, headers)
    expect(response.status).toBe(302)
    const to = new URL(response.headers.get("location")!)
    return { response, url: to, cookie: cookieIn(response), nonce: to.searchParams.get("nonce")! }
  }
  const proof: PortierGateway["proof"] = (nonce, claims = {}, header = { typ: undefined }) => {
    const said = { sub: "anna@example.org", iat: seconds(), email_verified: true }
    return broker.token({ aud: origin, ...said, nonce, ...claims }, header)
  }
  const verify: PortierGateway["verify"] = (cookie, fields, accept = "application/json") =>
    fetch(`${url}/portier/verify`, {
      method: "POST",
      redirect: "manual",
      // The broker's pages are in a sandbox, so their origin is opaque.
      headers: { accept, cookie, origin: "null", "sec-fetch-site": "cross-site" },
      body: new URLSearchParams(fields)
    })
  const loggedIn: PortierGateway["loggedIn"] = async (email = "anna@example.org") => {
    const { cookie, nonce } = await begun(email)
    const response = await verify(cookie, { id_token: await proof(nonce, { sub: email }) })
    expect(response.status).toBe(302)
    return tokenIn(response)
  }
  return { service, begin, begun, proof, verify, loggedIn }
}

/** A broker of the test, and a service of these roles that believes it. */
export const startPortier = async (
  roles: string,
  env: Readonly<Record<string, string>> = {}
): Promise<Portier> => {
  const [nats, broker, port] = await Promise.all([
    startNats(),
    startIdentityProvider({
      id_token_signing_alg_values_supported: ["RS256", "EdDSA"],
      accepts_id_token_signing_alg_query_param: true
    }),
    claimPort()
  ])
  await broker.rotate("EdDSA", "second", { keeps: true })
  const origin = `http://127.0.0.1:${port}`
  const settings = {
    BELLCAST_AUTH_POLICIES: "portier",
    BELLCAST_HTTP_SCHEME: "http",
    BELLCAST_HTTP_HOST: `127.0.0.1:${port}`,
    BELLCAST_AUTH_PORTIER_BROKER_URL: `${broker.url}/`,
    BELLCAST_AUTH_PORTIER_REDIRECT_HOSTS: "app.example.org",
    BELLCAST_AUTH_PORTIER_LOGINS_PER_CLIENT_PER_HOUR_MAX: "0",
    BELLCAST_CORS_ORIGINS: "https://app.example.org",
    ...env
  }
  const services: Array<Service> = []
  const start = async (options: ServiceOptions) => {
    const service = await startService({ natsUrl: nats.url, ...options })
    services.push(service)
    return gatewayOf(service, origin, broker)
  }
  return {
    ...(await start({ port, roles, env: settings })),
    broker,
    origin,
    another: (more) => start({ roles: "gateway", env: { ...settings, ...more } }),
    [Symbol.asyncDispose]: async () => {
      await Promise.all(services.map((service) => service.stop()))
      await Promise.all([broker, nats].map((each) => each[Symbol.asyncDispose]()))
    }
  }
}
