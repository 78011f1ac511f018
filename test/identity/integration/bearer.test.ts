// Bearer tokens of all kinds in front of one gateway: introspection, the verify call, JWTs of an
// issuer, and users that a site signed. Each misbehaviour of a provider, each wrong token.
import { type CryptoKey, SignJWT, UnsecuredJWT } from "jose"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { type BearerGateway, oldSecret, secret, startBearerGateway } from "#test/identity/bearer.ts"
import type { Mood } from "#test/identity/provider.ts"
import { userIn } from "#test/identity/requests.ts"
import { runCli } from "#test/run-cli.ts"

let gateway: BearerGateway
beforeAll(async () => {
  gateway = await startBearerGateway()
})
afterAll(() => gateway[Symbol.asyncDispose]())
beforeEach(() => {
  for (const provider of [gateway.opaque, gateway.external, gateway.issuer]) {
    provider.mood = "well"
    provider.requests.length = 0
  }
})

const send = (token: string, path = "/subscriptions", method = "GET") =>
  fetch(`${gateway.service.url}${path}`, { method, headers: { authorization: `Bearer ${token}` } })
const statusOf = async (token: string) => (await send(token)).status
const userOf = async (token: string) => userIn(await send(token, "/"))
const challengeOf = async (token: string) => (await send(token)).headers.get("www-authenticate")

const introspected: BearerGateway["introspected"] = (members) => gateway.introspected(members)
const seconds = () => Math.floor(Date.now() / 1000)

describe("introspection", () => {
  it("finds the user and their scopes, with our login form-encoded", async () => {
    const token = introspected({ sub: "user 7", scope: "push:read push" })
    expect(await userOf(token)).toEqual({
      id: "oauth:user 7",
      principals: [
        "oauth:user 7",
        "system.Everyone",
        "system.Authenticated",
        "group:oauth:push:read",
        "group:oauth:push"
      ]
    })
    const [request] = gateway.opaque.requests
    expect(Buffer.from(request!.authorization!.slice("Basic ".length), "base64").toString()).toBe(
      "bell+cast:p%3Ass%2B%25"
    )
  })

  it("gives a user with a mail address an id without it", async () => {
    const user = await userOf(introspected({ sub: "Anna@example.org" }))
    expect(user?.id).toMatch(/^oauth:@[0-9a-f]{64}$/)
    expect(await userOf(introspected({ sub: "anna@example.org" }))).toEqual(user)
  })

  const wrong: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
    inactive: { active: false },
    expired: { exp: seconds() - 1 },
    "not valid yet": { nbf: seconds() + 3_600 },
    "of another audience": { aud: "another" },
    "without an audience": { aud: undefined },
    "of another type": { token_type: "DPoP" },
    // Keycloak calls these active, with our audience in `aud`.
    "an ID token": { token_type: "ID", aud: ["page", "bellcast"] },
    "a refresh token": { token_type: "Refresh", aud: ["page", "bellcast"] },
    "bound to a client certificate": { cnf: { "x5t#S256": "x" } },
    "without a user": { sub: "" }
  }
  for (const [name, members] of Object.entries(wrong)) {
    it(`refuses a token that is ${name}`, async () => {
      const token = introspected(members)
      expect(await statusOf(token)).toBe(401)
      expect(await challengeOf(token)).toMatch(/^Bearer realm="Realm", error="invalid_token"/)
    })
  }

  it("says when a scope is missing", async () => {
    expect(await challengeOf(introspected({ scope: "read" }))).toMatch(/insufficient_scope/)
  })

  const moods: ReadonlyArray<Mood> = ["down", "garbage", "redirecting", "huge", "401", "429", "500"]
  for (const mood of moods) {
    it(`is a 503 with Retry-After while the server is ${mood}, and works after it`, async () => {
      const token = introspected({})
      gateway.opaque.mood = mood
      const refused = await send(token)
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "3"])
      gateway.opaque.mood = "well"
      expect(await statusOf(token)).toBe(200)
    })
  }
})

describe("the verify call", () => {
  const verified = (members: Readonly<Record<string, unknown>>) => {
    const token = `account-${gateway.external.tokens.size}`
    gateway.external.tokens.set(token, {
      user: "u1",
      client_id: "c",
      scope: ["push:write"],
      ...members
    })
    return token
  }

  it("finds the user", async () => {
    expect(await userOf(verified({}))).toMatchObject({ id: "oauth-accounts:u1" })
  })

  it("refuses unknown tokens and missing scopes, and is a 503 for half an answer", async () => {
    expect(await statusOf("unknown")).toBe(401)
    expect(await statusOf(verified({ scope: ["pull"] }))).toBe(401)
    expect(await statusOf(verified({ user: undefined }))).toBe(503)
  })
})

describe("tokens of an issuer", () => {
  it("are verified without sending them anywhere, and roles become groups", async () => {
    const token = await gateway.issuer.token({ realm_access: { roles: ["editor"] } })
    expect((await userOf(token))?.principals).toContain("group:openid:editor")
    const published = await send(token, "/channels/news", "POST")
    expect(published.status).toBe(202)
    const broadcast = Number(published.headers.get("location")?.split("/").at(-1))
    await expect
      .poll(gateway.service.output)
      .toMatch(new RegExp(`"uid":"openid:alice".*"broadcast":${broadcast}\\b`))
    const cli = await runCli(["audit", String(broadcast), "--nats", gateway.nats.url])
    expect(cli.code).toBe(0)
    expect(cli.stdout).toMatch(/accepted \S+ from rest by openid:alice$/m)
    expect(gateway.opaque.requests.length + gateway.external.requests.length).toBe(0)
  })

  const wrong: Readonly<Record<string, readonly [object, object?]>> = {
    "with another audience": [{ aud: "another" }],
    expired: [{ exp: seconds() - 1 }],
    "without an end": [{ exp: undefined }],
    "not valid yet": [{ nbf: seconds() + 3_600 }],
    "an ID token by typ": [{ typ: "ID" }],
    "an ID token by at_hash": [{ at_hash: "x" }],
    "bound to a key": [{ cnf: { jkt: "x" } }],
    "of another type": [{}, { typ: "logout+jwt" }],
    "with a key of its own": [{}, { jwk: { kty: "oct" } }],
    "with the address of a key": [{}, { jku: "https://evil.example/keys" }],
    "with the address of a certificate": [{}, { x5u: "https://evil.example/certificate" }],
    "with a critical header": [{}, { crit: ["b64"], b64: true }],
    "without a user": [{ sub: undefined }]
  }
  for (const [name, [claims, header]] of Object.entries(wrong)) {
    it(`are refused when they are ${name}`, async () => {
      const token = await gateway.issuer.token(claims as Record<string, unknown>, header as never)
      expect(await statusOf(token)).toBe(401)
    })
  }

  it("are refused without a signature, and with a public key taken for a secret", async () => {
    const claims = { iss: gateway.issuer.url, aud: "bellcast", sub: "alice", exp: seconds() + 60 }
    expect(await statusOf(new UnsecuredJWT(claims).encode())).toBe(401)
    const forged = await new SignJWT(claims)
      .setProtectedHeader({ alg: "HS256", kid: "first" })
      .sign(Buffer.from(secret))
    expect(await statusOf(forged)).toBe(401)
  })

  it("that name an unknown key cost one fetch, whatever their number", async () => {
    await statusOf(await gateway.issuer.token())
    const before = gateway.issuer.count("/jwks")
    const unknown = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        gateway.issuer.token({ jti: i }, { kid: `made-up-${i}` })
      )
    )
    // 503: they arrived while the keys were being fetched.
    for (const status of await Promise.all(unknown.map(statusOf)))
      expect([401, 503]).toContain(status)
    expect(gateway.issuer.count("/jwks") - before).toBeLessThanOrEqual(1)
  })
})

it("says what is wrong with a token, and shows no part of it", async () => {
  const { issuer } = gateway
  const ofIssuer = async (claims = {}, header = {}) => issuer.token(claims, header)
  const said = async (token: string) =>
    /error_description="([^"]*)"/.exec((await challengeOf(token)) ?? "")?.[1]
  expect([
    await said(await ofIssuer({ aud: "another" })),
    await said(await ofIssuer({ exp: seconds() - 60 })),
    await said(await ofIssuer({ exp: seconds() - 1 })),
    await said(await ofIssuer({ at_hash: "x" })),
    await said(await ofIssuer({ sub: undefined })),
    await said(introspected({ active: false })),
    await said(introspected({ aud: "another" }))
  ]).toEqual([
    "the authorization server refuses the token",
    "exp is over",
    "exp is over",
    "the token is no plain bearer access token",
    "the claim with the user's id is missing (an email counts only if it is verified)",
    "the authorization server refuses the token",
    "aud does not name this service"
  ])
})

describe("users that a site signed", () => {
  const signedBy = (
    key: CryptoKey | Uint8Array,
    alg: string,
    claims: Readonly<Record<string, unknown>> = {}
  ) =>
    new SignJWT({ sub: "42", aud: "bellcast", exp: seconds() + 3_600, ...claims })
      .setProtectedHeader({ alg })
      .sign(key)
  const bytes = (text: string) => Buffer.from(text)

  it("are believed by each secret and by the public key", async () => {
    for (const token of [
      await signedBy(bytes(secret), "HS256"),
      await signedBy(bytes(oldSecret), "HS256"),
      await signedBy(gateway.siteKey, "EdDSA")
    ])
      expect(await userOf(token)).toMatchObject({ id: "signed:42" })
  })

  it("are refused with another secret or audience, or a life of more than a day", async () => {
    const key = bytes(secret)
    for (const token of [
      await signedBy(bytes(`${secret}x`), "HS256"),
      await signedBy(key, "HS512"),
      await signedBy(key, "HS256", { aud: "another" }),
      await signedBy(key, "HS256", { exp: seconds() + 90_000 }),
      await signedBy(key, "HS256", { exp: undefined }),
      await signedBy(key, "HS256", { sub: undefined })
    ])
      expect(await statusOf(token)).toBe(401)
  })
})

describe("a secret token of ours", () => {
  it("goes to no provider", async () => {
    expect(await statusOf("bellcast_abc")).toBe(401)
    expect(gateway.opaque.requests.length + gateway.external.requests.length).toBe(0)
  })
})

it("shows no token and no address in the log", async () => {
  const token = introspected({ sub: "zoe@example.org" })
  await statusOf(token)
  expect(gateway.service.output()).not.toMatch(/opaque-\d|account-\d|example\.org|eyJ/)
})
