// The console on its host and on others, and logins at it by a link of a site: each link works
// once, for a minute, from the console's own page.
import { randomUUID } from "node:crypto"
import { SignJWT } from "jose"
import { describe, expect, it } from "vitest"
import { startNats } from "#test/nats.ts"
import { claimPort } from "#test/ports.ts"
import { runCli } from "#test/run-cli.ts"
import { startService } from "#test/service.ts"
import { useShared } from "#test/use-service.ts"

const siteSecret = "the-secret-of-the-site-and-of-Bellcast"
const signing = {
  BELLCAST_AUTH_SIGNED_SECRETS: siteSecret,
  BELLCAST_AUTH_SIGNED_AUDIENCE: "bellcast"
}
const site = "https://www.example.org"

const shared = useShared(async (opened) => {
  const port = await claimPort()
  const nats = opened.use(await startNats())
  const origin = `http://localhost:${port}`
  const options = {
    natsUrl: nats.url,
    env: {
      ...signing,
      BELLCAST_AUTH_FAILURES_PER_ADDRESS_PER_MINUTE_MAX: "60",
      BELLCAST_AUTH_POLICIES: "signed signed-shop token",
      BELLCAST_AUTH_SIGNED_SHOP_SECRETS: `${siteSecret}-shop`,
      BELLCAST_AUTH_SIGNED_SHOP_AUDIENCE: "shop",
      BELLCAST_CHANNEL_WRITE_PRINCIPALS: "group:signed:editors",
      BELLCAST_CORS_ORIGINS: site,
      BELLCAST_CONSOLE_ORIGIN: origin
    }
  }
  const service = opened.use(
    await startService({ ...options, port, roles: "gateway,projection,fanout" })
  )
  const second = opened.use(await startService({ ...options, roles: "gateway" }))
  return { nats, service, second, origin, console: `${origin}/v1/console` }
})

const seconds = () => Math.floor(Date.now() / 1000)
type Claims = Readonly<Record<string, unknown>>

const signed = (claims: Claims, secret = siteSecret) =>
  new SignJWT({ aud: "bellcast", groups: ["editors"], ...claims })
    .setProtectedHeader({ alg: "HS256" })
    .sign(new TextEncoder().encode(secret))

/** The token of a link for anna, as a site signs it. */
const linkToken = (claims: Claims = {}, secret = siteSecret) => {
  const iat = seconds()
  return signed({ sub: "anna", iat, exp: iat + 60, jti: randomUUID(), ...claims }, secret)
}

type Headers = Readonly<Record<string, string>>

const exchange = (token: unknown, headers: Headers = {}, url = `${shared.console}/session`) =>
  fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ data: { token } })
  })

interface Session {
  readonly token: string
  readonly user: string
  readonly expires_at: number
}

const sessionOf = async (token: string): Promise<Session> => {
  const response = await exchange(token)
  expect(response.status).toBe(201)
  return ((await response.json()) as { readonly data: Session }).data
}

const codeOf = async (response: Response) => {
  const { error_code, message } = (await response.json()) as Claims
  return { status: response.status, error_code, message }
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

describe("the console", () => {
  it("is served on its own host, and unknown on every other", async () => {
    expect((await fetch(shared.console)).url).toBe(`${shared.console}/`)
    expect((await fetch(`${shared.console}/worker.js`)).status).toBe(404)
    const paths = ["", "/", "/console.js", "/console.css", "/config.json", "/icon.svg"]
    for (const path of paths) {
      expect((await fetch(`${shared.console}${path}`)).status, path).toBe(200)
      const elsewhere = await fetch(`${shared.service.url}/console${path}`, { redirect: "manual" })
      expect(await codeOf(elsewhere), path).toMatchObject({
        status: 404,
        error_code: "unknown-url"
      })
    }
    const token = await linkToken()
    const posted = await exchange(token, {}, `${shared.service.url}/console/session`)
    expect(posted.status).toBe(404)
    const forwarded = { "x-forwarded-host": new URL(shared.origin).host }
    const faked = await fetch(`${shared.service.url}/console/`, { headers: forwarded })
    expect(faked.status).toBe(404)
    expect((await exchange(token)).status).toBe(201)
  })

  it("is not in a batch, whose entries choose their headers", async () => {
    const body = JSON.stringify({
      requests: [
        { path: "/console/" },
        { path: "/console/session", method: "POST", body: { data: { token: await linkToken() } } }
      ]
    })
    const headers = { "content-type": "application/json" }
    const response = await fetch(`${shared.origin}/v1/batch`, { method: "POST", headers, body })
    const { responses } = (await response.json()) as { responses: Array<{ status: number }> }
    expect(responses.map(({ status }) => status)).toEqual([404, 404])
  })

  it("cannot be framed, opened or read by another page, even of an allowed site", async () => {
    for (const path of ["/", "/console.js", "/config.json"]) {
      const { headers } = await fetch(`${shared.console}${path}`, { headers: { origin: site } })
      expect(headers.get("access-control-allow-origin"), path).toBeNull()
      expect(headers.get("content-security-policy"), path).toMatch(/frame-ancestors 'none'/)
    }
    const { headers } = await fetch(`${shared.console}/`)
    expect(headers.get("content-security-policy")?.split("; ").toSorted()).toEqual(
      [
        ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'"],
        ...["img-src 'self' https: data:", "base-uri 'none'", "form-action 'none'"],
        ...["frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"]
      ].toSorted()
    )
    expect(headers.get("cross-origin-opener-policy")).toBe("same-origin")
    expect(headers.get("cross-origin-resource-policy")).toBe("same-origin")
    expect(headers.get("referrer-policy")).toBe("no-referrer")
    expect(headers.get("permissions-policy")).toMatch(/camera=\(\)/)
    expect(headers.get("x-content-type-options")).toBe("nosniff")
    expect(headers.get("cache-control")).toBe("no-cache")
    const again = { "if-none-match": headers.get("etag")! }
    expect((await fetch(`${shared.console}/`, { headers: again })).status).toBe(304)
  })

  it("says by which logins one gets in", async () => {
    const config = (await (await fetch(`${shared.console}/config.json`)).json()) as Claims
    expect(config).toEqual({
      development: false,
      origin: shared.origin,
      logins: [
        { policy: "signed", kind: "signed" },
        { policy: "signed-shop", kind: "signed" }
      ],
      version: expect.stringMatching(/^\d/),
      languages: ["en", "de"]
    })
  })
})

describe("a link to the console", () => {
  it("gives a session with exactly the rights of its user, until it is ended", async () => {
    const { expires_at, token, user } = await sessionOf(await linkToken())
    expect(user).toBe("signed:anna")
    expect(expires_at - Date.now()).toBeGreaterThan(11.9 * 3_600_000)
    const own = await fetch(`${shared.origin}/v1/`, { headers: bearer(token) })
    expect(((await own.json()) as { user: Claims })["user"]).toEqual({
      id: "signed:anna",
      principals: [
        ...["signed:anna", "system.Everyone", "system.Authenticated", "group:signed:editors"]
      ]
    })
    // The pages of the console may call, though only those of the site are named.
    const headers = { ...bearer(token), origin: shared.origin, "content-type": "application/json" }
    const body = JSON.stringify({ data: { title: "hello" } })
    const publish = { method: "POST", headers, body }
    const published = await fetch(`${shared.origin}/v1/channels/news`, publish)
    expect(published.status).toBe(202)
    expect(published.headers.get("location")).toMatch(`${shared.origin}/v1/`)
    expect((await fetch(`${shared.origin}/v1/dead`, { headers })).status).toBe(403)
    const atSecond = () => fetch(`${shared.second.url}/registrations`, { headers: bearer(token) })
    expect((await atSecond()).status).toBe(200)
    const ended = await fetch(`${shared.console}/session`, { method: "DELETE", headers })
    expect(ended.status).toBe(204)
    await expect.poll(async () => (await atSecond()).status, { timeout: 2_000 }).toBe(401)
    const twice = await fetch(`${shared.console}/session`, { method: "DELETE", headers })
    expect(twice.status).toBe(401)
  })

  it("works once, also of many requests at the same time and at another gateway", async () => {
    const token = await linkToken()
    const all = await Promise.all(Array.from({ length: 8 }, () => exchange(token)))
    const codes = await Promise.all(all.map(codeOf))
    expect(codes.filter(({ status }) => status === 201)).toHaveLength(1)
    for (const { error_code, status } of codes.filter((each) => each.status !== 201))
      expect({ error_code, status }).toEqual({ error_code: "used-link", status: 400 })
    const sameJti = await linkToken({ sub: "bob", jti: "one number for two" })
    expect((await exchange(sameJti)).status).toBe(201)
    const other = await exchange(await linkToken({ jti: "one number for two" }))
    expect(await codeOf(other)).toMatchObject({ error_code: "used-link" })
  })

  it("is refused where its token is not one for a link, with the reason", async () => {
    const now = seconds()
    const refused: ReadonlyArray<readonly [RegExp, string]> = [
      [/jti/, await linkToken({ jti: undefined })],
      [/jti/, await linkToken({ jti: "j".repeat(201) })],
      [/iat/, await linkToken({ iat: undefined })],
      [/iat/, await linkToken({ iat: now + 3_600, exp: now + 3_660 })],
      [/60 s at most/, await linkToken({ exp: now + 61, iat: now })],
      [/60 s at most/, await linkToken({ exp: now + 3_600 })],
      [/exp is missing/, await linkToken({ exp: undefined })],
      [/more than a day/, await linkToken({ exp: now + 90_000 })],
      [/signature/, await linkToken({}, `${siteSecret}-shop`)],
      [/no policy signed/i, await linkToken({ aud: "another" })],
      [/no policy signed/i, await linkToken({ iss: "https://login.example.org" })],
      [/no policy signed/i, (await sessionOf(await linkToken())).token],
      [/no policy signed/i, "bellcast_a-token-of-a-server"]
    ]
    for (const [reason, token] of refused) {
      const said = await codeOf(await exchange(token))
      expect(said, String(reason)).toMatchObject({ status: 400, error_code: "invalid-login" })
      expect(said.message).toMatch(reason)
    }
    const late = await exchange(await linkToken({ iat: now - 61, exp: now - 1 }))
    expect(await codeOf(late)).toMatchObject({ status: 400, error_code: "expired-link" })
    for (const none of [undefined, "", 1])
      expect(await codeOf(await exchange(none))).toMatchObject({ error_code: "invalid-body" })
  })

  it("of another policy makes a session of that policy's user", async () => {
    const link = await linkToken({ aud: "shop" }, `${siteSecret}-shop`)
    const { token, user } = await sessionOf(link)
    expect(user).toBe("signed-shop:anna")
    const headers = { ...bearer(token), "content-type": "application/json" }
    const body = JSON.stringify({ data: {} })
    const response = await fetch(`${shared.service.url}/channels/news`, {
      ...{ method: "POST", headers, body }
    })
    expect(response.status).toBe(403)
  })

  it("is exchanged by no page of another origin", async () => {
    const token = await linkToken()
    const pages: ReadonlyArray<Headers> = [
      { origin: site },
      { origin: "null" },
      { origin: site, "sec-fetch-site": "same-origin" },
      { origin: new URL(shared.service.url).origin, "sec-fetch-site": "same-site" },
      { "sec-fetch-site": "cross-site" },
      { "content-type": "text/plain" }
    ]
    for (const page of pages)
      expect((await exchange(token, page)).status, JSON.stringify(page)).toBeOneOf([400, 415])
    const preflight = { origin: site, "access-control-request-method": "POST" }
    const asked = await fetch(`${shared.console}/session`, {
      method: "OPTIONS",
      headers: preflight
    })
    expect(asked.status).toBe(400)
    expect(asked.headers.get("access-control-allow-origin")).toBeNull()
    expect((await exchange(token, { origin: shared.origin })).status).toBe(201)
  })

  it("is printed by the command, for a minute at most", async () => {
    const env = { ...signing, BELLCAST_CONSOLE_ORIGIN: shared.origin }
    const printed = await runCli(["sign-user", "anna", "--console", "--group", "staff"], env)
    expect(printed).toMatchObject({ code: 0, stderr: "" })
    const [page, token = ""] = printed.stdout.trimEnd().split("#login=")
    expect(page).toBe(`${shared.console}/`)
    expect((await sessionOf(token)).user).toBe("signed:anna")
    for (const [args, settings, said] of [
      [["--expires", "61s"], env, /--expires: Expected at most 60s for a link/],
      [[], signing, /BELLCAST_CONSOLE_ORIGIN is not set here/],
      [[], { ...env, BELLCAST_CONSOLE_ORIGIN: "http://desk.example.org" }, /Expected one origin/]
    ] as const) {
      const refused = await runCli(["sign-user", "anna", "--console", ...args], settings)
      expect(refused).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(said) })
    }
  })

  it("that is wrong counts as wrong credentials of the address", async () => {
    const statusOf = async () => (await exchange(await linkToken({ jti: "" }))).status
    await expect.poll(statusOf, { timeout: 30_000, interval: 1 }).toBe(429)
    const said = await codeOf(await exchange(await linkToken()))
    expect(said).toMatchObject({ status: 429, error_code: "too-many-wrong-credentials" })
  })
})
