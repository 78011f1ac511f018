// A certified OpenID provider beside the service: logins by its pages, its JWTs, introspection of
// its opaque tokens, and new keys. And everything that must not end a login.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { get, returnedFrom } from "#test/identity/cookies.ts"
import { clientSecret, type OidcProvider, startOidcProvider } from "#test/identity/oidc-provider.ts"
import { userIn } from "#test/identity/requests.ts"
import { startNats, type TestNats } from "#test/nats.ts"
import { claimPort } from "#test/ports.ts"
import { type Service, startService } from "#test/service.ts"

const page = "https://app.example.org/#"

let nats: TestNats
let provider: OidcProvider
let service: Service

beforeAll(async () => {
  const port = await claimPort()
  ;[nats, provider] = await Promise.all([
    startNats(),
    startOidcProvider([`http://127.0.0.1:${port}/v1/openid/openid/token`])
  ])
  service = await startService({
    natsUrl: nats.url,
    port,
    roles: "gateway,projection",
    env: {
      BELLCAST_AUTH_POLICIES: "openid oauth openid-other",
      BELLCAST_HTTP_SCHEME: "http",
      BELLCAST_HTTP_HOST: `127.0.0.1:${port}`,
      BELLCAST_AUTH_OPENID_ISSUER: provider.issuer,
      BELLCAST_AUTH_OPENID_AUDIENCE: "bellcast",
      BELLCAST_AUTH_OPENID_REQUIRED_SCOPES: "push",
      BELLCAST_AUTH_OPENID_CLIENT_ID: "page",
      BELLCAST_AUTH_OPENID_CLIENT_SECRET: clientSecret,
      BELLCAST_AUTH_OPENID_CALLBACK_HOSTS: "app.example.org",
      BELLCAST_AUTH_OPENID_LOGIN_PARAMETERS: "ui_locales=de",
      BELLCAST_AUTH_OPENID_OTHER_ISSUER: "http://127.0.0.1:1",
      BELLCAST_AUTH_OPENID_OTHER_AUDIENCE: "other",
      BELLCAST_AUTH_OAUTH_INTROSPECTION_URL: `${provider.issuer}/token/introspection`,
      BELLCAST_AUTH_OAUTH_CLIENT_ID: "bellcast",
      BELLCAST_AUTH_OAUTH_CLIENT_SECRET: clientSecret,
      BELLCAST_AUTH_OAUTH_USERID_FIELD: "client_id",
      BELLCAST_AUTH_VERIFICATION_TTL_SECONDS: "1",
      BELLCAST_AUTH_FAILURES_PER_ADDRESS_PER_MINUTE_MAX: "0"
    }
  })
})
afterAll(async () => {
  await service.stop()
  await Promise.all([provider, nats].map((each) => each[Symbol.asyncDispose]()))
})

const login = (callback = page, more = "") =>
  fetch(`${service.url}/openid/openid/login?callback=${encodeURIComponent(callback)}${more}`, {
    redirect: "manual"
  })

const returned = async (more = "") => returnedFrom(await login(page, more), provider.issuer)

const finish = (location: URL, cookies: ReadonlyMap<string, string>) =>
  get(location.href, cookies, "application/json")
const errorOf = async (response: Response) => {
  const { errno } = (await response.json()) as { errno: number }
  return [response.status, errno]
}
const failure = [400, 105]

const send = (token: string, path: string) =>
  fetch(`${service.url}${path}`, { headers: { authorization: `Bearer ${token}` } })
const userOf = async (token: string) => (await userIn(await send(token, "/")))?.id
const statusOf = async (token: string) => (await send(token, "/subscriptions")).status

const loggedIn = async () => {
  const { cookies, location } = await returned()
  const response = await finish(location, cookies)
  expect(response.status).toBe(307)
  return decodeURIComponent(response.headers.get("location")!.slice(page.length))
}

describe("a login", () => {
  it("goes to the issuer and back, with the access token alone in the fragment", async () => {
    const { begun, cookies, first, location } = await returned()
    expect(begun.status).toBe(307)
    expect(begun.headers.get("set-cookie")).toMatch(
      /^__Host-bellcast-openid=[\w.-]+; Max-Age=3600; Path=\/; Secure; HttpOnly; SameSite=Lax$/
    )
    expect(Object.fromEntries(first.searchParams)).toMatchObject({
      response_type: "code",
      client_id: "page",
      scope: "openid push",
      code_challenge_method: "S256",
      ui_locales: "de"
    })
    const response = await finish(location, cookies)
    expect(response.status).toBe(307)
    expect(response.headers.get("location")).toMatch(
      /^https:\/\/app\.example\.org\/#eyJ[\w-]+\.[\w-]+\.[\w-]+$/
    )
    expect(response.headers.get("set-cookie")).toMatch(/^__Host-bellcast-openid=; Max-Age=0;/)
    const token = response.headers.get("location")!.slice(page.length)
    expect(await userOf(token)).toBe("openid:alice")
    for (const secret of [token, location.searchParams.get("code")!, "eyJ"])
      expect(service.output().includes(secret)).toBe(false)
  })

  it("ends once, in the browser that began it", async () => {
    const { cookies, location } = await returned()
    const other = await returned()
    const wrong = new URL(location)
    wrong.searchParams.set("state", "0".repeat(32))
    const without = new URL(location)
    without.searchParams.delete("state")
    const mixedUp = new URL(location)
    mixedUp.searchParams.set("iss", "https://other.example")
    const ofNobody = new URL(location)
    ofNobody.searchParams.delete("iss")
    expect(await errorOf(await finish(location, new Map()))).toEqual(failure)
    expect(await errorOf(await finish(location, other.cookies))).toEqual(failure)
    expect(await errorOf(await finish(wrong, cookies))).toEqual(failure)
    expect(await errorOf(await finish(without, cookies))).toEqual(failure)
    expect(await errorOf(await finish(mixedUp, cookies))).toEqual(failure)
    expect(await errorOf(await finish(ofNobody, cookies))).toEqual(failure)
    const responses = await Promise.all(Array.from({ length: 4 }, () => finish(location, cookies)))
    expect(responses.map(({ status }) => status).sort()).toEqual([307, 400, 400, 400])
  })

  it("needs the code of this login", async () => {
    const one = await returned()
    const two = await returned()
    const mixed = new URL(one.location)
    mixed.searchParams.set("code", two.location.searchParams.get("code")!)
    // PKCE: the code belongs to the other login.
    expect(await errorOf(await finish(mixed, one.cookies))).toEqual(failure)
    const made = new URL(two.location)
    made.searchParams.set("code", "made-up")
    expect(await errorOf(await finish(made, two.cookies))).toEqual(failure)
    const { cookies, location } = await returned()
    location.searchParams.delete("code")
    expect(await errorOf(await finish(location, cookies))).toEqual([400, 107])
  })

  it("says when the issuer refuses", async () => {
    const { cookies, location } = await returned("&prompt=none")
    expect(location.searchParams.get("error")).toBe("login_required")
    const response = await finish(location, cookies)
    expect(response.status).toBe(400)
    expect(await response.text()).toMatch(/"errno":107.*login_required/)
  })

  it("returns only to allowed pages", async () => {
    for (const callback of [
      "",
      "//evil.example",
      "https://evil.example/",
      "http://app.example.org"
    ]) {
      const response = await login(callback)
      expect(await errorOf(response), callback).toEqual([400, 107])
      expect(response.headers.get("set-cookie")).toBeNull()
    }
  })

  it("is a 404 where no client is configured", async () => {
    for (const path of ["openid/openid-other", "openid/oauth", "openid/nobody", "portier"])
      expect((await fetch(`${service.url}/${path}/login?callback=${page}`)).status).toBe(404)
  })
})

describe("tokens of the provider", () => {
  /** An opaque token. */
  const opaque = async () => {
    const login = `bellcast:${encodeURIComponent(clientSecret)}`
    const response = await fetch(`${provider.issuer}/token`, {
      method: "POST",
      headers: { authorization: `Basic ${btoa(login)}` },
      body: new URLSearchParams({ grant_type: "client_credentials" })
    })
    const { access_token: token } = (await response.json()) as { access_token: string }
    return { token, login }
  }

  it("that are opaque are introspected, until they are revoked", async () => {
    const { login, token } = await opaque()
    expect(await userOf(token)).toBe("oauth:bellcast")
    await fetch(`${provider.issuer}/token/revocation`, {
      method: "POST",
      headers: { authorization: `Basic ${btoa(login)}` },
      body: new URLSearchParams({ token })
    })
    await expect.poll(() => statusOf(token)).toBe(401)
  })

  it("are believed by each new key, and no longer by the former", async () => {
    const before = await loggedIn()
    expect(await statusOf(before)).toBe(200)
    await provider.rotate("ES256")
    const after = async () => {
      const { cookies, location } = await returned()
      return (await finish(location, cookies)).status
    }
    await expect.poll(after, { timeout: 30_000, interval: 1_000 }).toBe(307)
    // What was verified before counts for a second.
    await expect.poll(() => statusOf(before)).toBe(401)
  })
})
