// Logins by the pages of an OpenID provider that fail: where the browser goes on, and what the log
// says.
import { afterAll, beforeAll, expect, it } from "vitest"
import { get, returnedFrom } from "#test/identity/cookies.ts"
import { clientSecret, type OidcProvider, startOidcProvider } from "#test/identity/oidc-provider.ts"
import { startNats, type TestNats } from "#test/nats.ts"
import { claimPort } from "#test/ports.ts"
import { type Service, startService } from "#test/service.ts"

const page = "https://app.example.org/#token="

let nats: TestNats
let provider: OidcProvider
let service: Service

/** The settings of a policy with login pages. `prefix`: of its settings. */
const settingsOf = (prefix: string, audience: string) => ({
  [`${prefix}_ISSUER`]: provider.issuer,
  [`${prefix}_AUDIENCE`]: audience,
  [`${prefix}_LOGIN_SCOPES`]: "openid push",
  [`${prefix}_CLIENT_ID`]: "page",
  [`${prefix}_CLIENT_SECRET`]: clientSecret,
  [`${prefix}_CALLBACK_HOSTS`]: "app.example.org"
})

beforeAll(async () => {
  const port = await claimPort()
  const urls = ["openid", "openid-strict"].map(
    (name) => `http://127.0.0.1:${port}/v1/openid/${name}/token`
  )
  ;[nats, provider] = await Promise.all([startNats(), startOidcProvider(urls)])
  service = await startService({
    natsUrl: nats.url,
    port,
    roles: "gateway",
    env: {
      BELLCAST_AUTH_POLICIES: "openid openid-strict",
      BELLCAST_HTTP_SCHEME: "http",
      BELLCAST_HTTP_HOST: `127.0.0.1:${port}`,
      ...settingsOf("BELLCAST_AUTH_OPENID", "bellcast"),
      ...settingsOf("BELLCAST_AUTH_OPENID_STRICT", "https://push.example.org/strict other")
    }
  })
})
afterAll(async () => {
  await service.stop()
  await Promise.all([provider, nats].map((each) => each[Symbol.asyncDispose]()))
})

/** A browser that began a login and was sent back by the provider. */
const returned = async (more = "", policy = "openid") => {
  const callback = encodeURIComponent(page)
  const url = `${service.url}/openid/${policy}/login?callback=${callback}${more}`
  return returnedFrom(await get(url, new Map()), provider.issuer)
}

it("a failed login returns to the page of this browser, with an error for the token", async () => {
  const refused = await returned("&prompt=none")
  const replaced = await returned()
  const later = await returned()
  const made = await returned()
  made.location.searchParams.set("code", "made-up")
  const strict = await returned("", "openid-strict")
  for (const [{ location }, cookies, error] of [
    [refused, refused.cookies, "login_required"],
    // Two tabs: the cookie is that of the later login.
    [replaced, later.cookies, "invalid_request"],
    [made, made.cookies, "invalid_request"],
    [strict, strict.cookies, "server_error"]
  ] as const) {
    const response = await get(location.href, cookies)
    expect([response.status, response.headers.get("set-cookie")]).toEqual([307, null])
    const [before, fragment = ""] = response.headers.get("location")!.split("#")
    expect(before).toBe("https://app.example.org/")
    const fields = Object.fromEntries(new URLSearchParams(fragment))
    expect(fields).toEqual({ error, error_description: expect.stringMatching(/\w/) })
  }
  // The later tab is not disturbed.
  const end = (await get(later.location.href, later.cookies)).headers.get("location")
  expect(end).toMatch(/#token=eyJ/)
})

it("a batch follows no login, and no log line has its token", async () => {
  const { cookies, location } = await returned()
  const path = `/openid/openid/token${location.search}`
  const cookie = [...cookies].map((pair) => pair.join("=")).join("; ")
  const body = JSON.stringify({ requests: [{ path, headers: { cookie } }] })
  const headers = { "content-type": "application/json" }
  const batch = await fetch(`${service.url}/batch`, { method: "POST", headers, body })
  const [entry] = ((await batch.json()) as { responses: ReadonlyArray<Entry> }).responses
  expect(entry).toMatchObject({ path: "/v1/openid/openid/token", status: 307 })
  const [, token] = /#token=(.+)/.exec(entry!.headers["Location"]!) ?? []
  expect(token).toMatch(/^eyJ/)
  expect(service.output()).not.toContain(token)
})
interface Entry {
  readonly headers: Readonly<Record<string, string>>
}

it("the log says for whom a token is that the policy does not accept", async () => {
  const { cookies, location } = await returned("", "openid-strict")
  const response = await get(location.href, cookies, "application/json")
  expect(await response.json()).toMatchObject({
    errno: 105,
    message: expect.stringContaining("Its log tells the operator why")
  })
  const lines = service.output().split("\n")
  const line = lines.find((each) => each.includes("a login of the policy openid-strict failed"))
  const issuer = provider.issuer.replace("://", " ")
  expect(JSON.parse(line!)).toMatchObject({
    wrong: "access token: aud does not name this service",
    expected: { issuer, audience: "https push.example.org/strict other" },
    found: { issuer, audience: "bellcast" }
  })
})
