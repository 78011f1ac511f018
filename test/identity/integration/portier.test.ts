// Logins by mail: the way of a browser through the broker and back, and everything that must not
// end in a session. A server of the test plays the broker, the test plays the browser.
import { createHash } from "node:crypto"
import { SignJWT, UnsecuredJWT } from "jose"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import {
  cookieIn,
  errorOf,
  fromPage,
  type Portier,
  page,
  seconds,
  startPortier,
  tokenIn
} from "#test/identity/portier.ts"

let portier: Portier
let { begin, begun, broker, loggedIn, origin, proof, service, verify } = {} as Portier

beforeAll(async () => {
  portier = await startPortier("gateway,projection", { BELLCAST_TRUSTED_PROXIES: "127.0.0.1" })
  ;({ begin, begun, broker, loggedIn, origin, proof, service, verify } = portier)
})
afterAll(() => portier[Symbol.asyncDispose]())

const rootOf = async (authorization: string) =>
  (await (await fetch(`${service.url}/`, { headers: { authorization } })).json()) as {
    user?: { id: string }
    capabilities: Record<string, unknown>
  }

it("waits for the broker: 503 while it is away, and the heartbeat says so", async () => {
  const heartbeat = async () => {
    const response = await fetch(`${service.url}/__heartbeat__`)
    return [response.status, ((await response.json()) as { portier: boolean }).portier]
  }
  broker.mood = "500"
  expect(await heartbeat()).toEqual([503, false])
  expect(await errorOf(await begin())).toEqual([503, 503, "unavailable"])
  broker.mood = "well"
  await expect.poll(heartbeat, { timeout: 40_000, interval: 300 }).toEqual([200, true])
})

describe("a login", () => {
  it("goes to the broker and back to the page, with a session in the fragment", async () => {
    const { cookie, nonce, response, url } = await begun()
    expect(url.href.startsWith(`${broker.url}/auth?`)).toBe(true)
    expect(Object.fromEntries(url.searchParams)).toEqual({
      login_hint: "Anna@Example.org",
      scope: "openid email",
      nonce,
      response_type: "id_token",
      response_mode: "form_post",
      client_id: origin,
      redirect_uri: `${origin}/v1/portier/verify`,
      id_token_signing_alg: "EdDSA"
    })
    expect(response.headers.get("set-cookie")).toMatch(
      /^__Host-bellcast-portier=[\w.-]+; Max-Age=3600; Path=\/; Secure; HttpOnly; SameSite=None$/
    )
    expect(response.headers.get("cache-control")).toMatch(/no-store/)
    const returned = await verify(`other=1; ${cookie}`, { id_token: await proof(nonce) })
    expect(returned.status).toBe(302)
    const location = returned.headers.get("location")!
    expect(location).toMatch(/^https:\/\/app\.example\.org\/inbox#token=[0-9a-f]{64}$/)
    expect(returned.headers.get("set-cookie")).toMatch(/^__Host-bellcast-portier=; Max-Age=0;/)
    const root = await rootOf(`PORTIER ${tokenIn(returned)}`)
    expect(root.user?.id).toMatch(/^portier:@[0-9a-f]{64}$/)
    expect(root.capabilities).toHaveProperty("portier")
  })

  it("may be a form or JSON", async () => {
    const fields = { email: "anna@example.org", redirect: page }
    const url = `${service.url}/portier/login`
    const form = { method: "POST", redirect: "manual" as const, headers: fromPage }
    const headers = { ...fromPage, "content-type": "application/json" }
    const json = { ...form, headers, body: JSON.stringify(fields) }
    for (const request of [{ ...form, body: new URLSearchParams(fields) }, json]) {
      const response = await fetch(url, request)
      const nonce = new URL(response.headers.get("location")!).searchParams.get("nonce")!
      const returned = await fetch(`${service.url}/portier/verify`, {
        ...form,
        headers: { ...headers, cookie: cookieIn(response) },
        body: JSON.stringify({ id_token: await proof(nonce) })
      })
      expect(returned.status).toBe(302)
    }
    expect(await errorOf(await fetch(url, { ...json, body: "{}" }))).toEqual([
      400,
      400,
      "invalid-body"
    ])
    const text = { ...form, headers: { "content-type": "text/plain" }, body: "a=b" }
    expect(await errorOf(await fetch(url, text))).toEqual([415, 415, "unsupported-media-type"])
  })

  it("makes one user of one address, and another of another", async () => {
    const idOf = async (email: string) =>
      (await rootOf(`Portier ${await loggedIn(email)}`)).user?.id
    const anna = await idOf("anna@example.org")
    expect(await idOf("Anna@EXAMPLE.org")).toBe(anna)
    expect(await idOf("bob@example.org")).not.toBe(anna)
  })

  it("is believed by each key of the broker, RS256 and EdDSA", async () => {
    for (const kid of ["first", "second"]) {
      const { cookie, nonce } = await begun()
      const response = await verify(cookie, { id_token: await proof(nonce, {}, { kid }) })
      expect(response.status, kid).toBe(302)
    }
  })

  it("is refused without an address or an allowed page", async () => {
    for (const [email, redirect] of [
      ["", page],
      ["anna", page],
      ["anna@example", page],
      ["anna@example.org\r\nBcc: x@example.org", page],
      ["anna\u202e@example.org", page],
      ["anna@example.org", ""],
      ["anna@example.org", "//evil.example/"],
      ["anna@example.org", "https://app.example.org@evil.example/"],
      ["anna@example.org", "https://evil.example\\@app.example.org/"],
      ["anna@example.org", "https://app.example.org/\r\nSet-Cookie: a=b"]
    ] as const) {
      const response = await begin(email, redirect)
      expect(await errorOf(response), `${email} ${redirect}`).toEqual([400, 400, "invalid-body"])
      const query = new URLSearchParams({ email, redirect })
      const asked = await fetch(`${service.url}/portier/login?${query}`)
      expect(await errorOf(asked), `${query}`).toEqual([400, 400, "invalid-request"])
      expect(response.headers.get("set-cookie")).toBeNull()
    }
  })

  it("is refused when one client began too many for one address", async () => {
    const statuses = new Set<number>()
    for (let i = 0; i < 21; i += 1) statuses.add((await begin("mallory@example.org")).status)
    expect([...statuses]).toEqual([302, 429])
    const refused = await begin("MALLORY@example.org")
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(60)
    expect(await errorOf(refused)).toEqual([429, 429, "too-many-logins"])
    expect((await begin("other@example.org")).status).toBe(302)
    // Else anybody could keep somebody from logging in.
    const elsewhere = { "x-forwarded-for": "192.0.2.1" }
    expect((await begin("mallory@example.org", page, elsewhere)).status).toBe(302)
  })
})

describe("a proof", () => {
  const failure = [400, 400, "invalid-login"]

  it("counts once, whoever sends it, and only in the browser that began", async () => {
    const { cookie, nonce } = await begun()
    const other = await begun()
    const fields = { id_token: await proof(nonce) }
    const forged = cookie.replace(/=([\w-]+)\./, (_, text: string) => {
      const state = JSON.parse(Buffer.from(text, "base64url").toString())
      const changed = { ...state, redirect: "https://evil.example/" }
      return `=${Buffer.from(JSON.stringify(changed)).toString("base64url")}.`
    })
    for (const wrong of [
      "",
      other.cookie,
      forged,
      "__Host-bellcast-portier=",
      "__Host-bellcast-portier=a.b"
    ])
      expect(await errorOf(await verify(wrong, fields)), wrong).toEqual(failure)
    const responses = await Promise.all(Array.from({ length: 8 }, () => verify(cookie, fields)))
    expect(responses.filter(({ status }) => status === 302).length).toBe(1)
    expect(await errorOf(await verify(cookie, fields))).toEqual(failure)
    expect(await errorOf(await verify(other.cookie, fields))).toEqual(failure)
  })

  const wrong: Readonly<Record<string, readonly [object, object?]>> = {
    "of another login": [{ nonce: "0".repeat(32) }],
    "without a nonce": [{ nonce: undefined }],
    "for another site": [{ aud: "https://other.example" }],
    "for two sites": [{ aud: ["https://other.example", "x"] }],
    "of another broker": [{ iss: "https://other.example" }],
    "that has expired": [{ exp: seconds() - 10 }],
    "without an end": [{ exp: undefined }],
    "from the future": [{ iat: seconds() + 600 }],
    "not valid yet": [{ nbf: seconds() + 600 }],
    "without an address": [{ sub: "anna" }],
    "of an address that is not verified": [{ email_verified: false }],
    "with a key of its own": [{}, { jwk: { kty: "oct" } }],
    "by an unknown key": [{}, { kid: "made-up" }]
  }
  for (const [name, [claims, header]] of Object.entries(wrong)) {
    it(`${name} is refused`, async () => {
      const { cookie, nonce } = await begun()
      const id_token = await proof(nonce, claims as Record<string, unknown>, header as never)
      expect(await errorOf(await verify(cookie, { id_token }))).toEqual(failure)
    })
  }

  it("without a signature, or signed with a public key as a secret, is refused", async () => {
    const { cookie, nonce } = await begun()
    const claims = {
      iss: broker.url,
      aud: origin,
      sub: "anna@example.org",
      iat: seconds(),
      exp: seconds() + 60,
      nonce
    }
    const jwks = await (await fetch(`${broker.url}/jwks`)).text()
    const { kid } = JSON.parse(jwks).keys[0]
    const hmac = await new SignJWT(claims)
      .setProtectedHeader({ alg: "HS256", kid })
      .sign(createHash("sha256").update(jwks).digest())
    const [head, body] = (await proof(nonce)).split(".")
    const unsigned = new UnsecuredJWT(claims).encode()
    for (const id_token of [hmac, unsigned, `${head}.${body}.`, `${head}.${body}`, "", "x"])
      expect(await errorOf(await verify(cookie, { id_token }))).toEqual(failure)
  })

  it("that the broker refused to give is an error with its code, not with its text", async () => {
    const { cookie } = await begun()
    const error_description = "<b>anna@example.org</b>"
    const response = await verify(cookie, { error: "access_denied", error_description })
    const text = await response.text()
    expect([response.status, JSON.parse(text).errno]).toEqual([400, 107])
    expect(text).toContain("access_denied")
    expect(text).not.toContain("anna")
    const query = await fetch(`${service.url}/portier/verify?error=x%20y`, { method: "POST" })
    expect(await errorOf(query)).toEqual([400, 400, "invalid-request"])
    expect(await errorOf(await verify(cookie, {}))).toEqual([400, 400, "invalid-body"])
  })
})

describe("a session", () => {
  it("is not known under another token, and not under another scheme", async () => {
    const token = await loggedIn()
    const statusOf = async (authorization: string) =>
      (await fetch(`${service.url}/subscriptions`, { headers: { authorization } })).status
    expect(await statusOf(`Portier ${token}`)).toBe(200)
    for (const wrong of [`${"0".repeat(64)}`, token.slice(1), `${token}0`, "x"])
      expect(await statusOf(`Portier ${wrong}`)).toBe(401)
    expect(await statusOf(`Bearer ${token}`)).toBe(401)
    expect(await statusOf(`Basic ${token}`)).toBe(401)
  })
})
