// Tokens, mail addresses and authorization codes appear nowhere: each policy, when it works and
// when it fails, in front of two gateways that log all that they can.
import { randomUUID } from "node:crypto"
import { connect } from "@nats-io/transport-node"
import { SignJWT } from "jose"
import { request } from "undici"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { follow, get, keep } from "#test/identity/cookies.ts"
import {
  configured,
  consolePage,
  type EveryPolicy,
  page,
  proxySecret,
  siteSecret,
  startEveryPolicy
} from "#test/identity/every-policy.ts"
import type { Mood } from "#test/identity/provider.ts"
import { secretsIn, tracesOf } from "#test/leaks.ts"
import { runCli } from "#test/run-cli.ts"
import { secretEnvironment } from "#test/service.ts"
import { UserAgent } from "#test/user-agent.ts"

let all: EveryPolicy
const address = "zoe@example.org"
/** The secrets that the cases have used so far. */
const secrets = new Set([
  ...configured,
  address,
  "zoe-friends@example.org",
  secretEnvironment.BELLCAST_USERID_HMAC_SECRET,
  secretEnvironment.BELLCAST_VAPID_PRIVATE_KEY
])
const broadcasts: Array<string> = []
/** Bodies of errors: clients log them. */
const errors: Array<string> = []

beforeAll(async () => {
  all = await startEveryPolicy()
})
afterAll(() => all[Symbol.asyncDispose]())

/** Notes a secret, and the parts of one with dots. */
const used = (secret: string): string => {
  secrets.add(secret)
  for (const part of secret.split(".").slice(1)) if (part.length >= 16) secrets.add(part)
  return secret
}

type Headers = Readonly<Record<string, string>>

const send = async (headers: Headers, path: string, method = "GET", body?: object | string) => {
  const response = await fetch(`${all.service.url}${path}`, {
    method,
    redirect: "manual",
    headers: body === undefined ? headers : { "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) })
  })
  if (response.status >= 400) errors.push(await response.clone().text())
  return response
}

/** All that a user does: subscribe, register, publish, in a batch, too. */
const act = async (headers: Headers) => {
  const data = new UserAgent(`${all.origin}/push/${crypto.randomUUID()}`, {}).subscription
  await send(headers, "/subscriptions", "POST", { data })
  await send(headers, "/channels/news/registration", "PUT")
  await send(headers, "/batch", "POST", {
    requests: [
      { path: "/" },
      { path: "/subscriptions?token=in-the-query-of-a-batch", headers },
      { method: "PUT", path: "/channels/news/registration", headers }
    ]
  })
  const published = await send(headers, "/channels/news", "POST", { data: { title: "hello" } })
  if (published.status === 202)
    broadcasts.push(published.headers.get("location")!.split("/").at(-1)!)
  return published.status
}

const seconds = () => Math.floor(Date.now() / 1000)
const signed = (sub: string, exp = seconds() + 60, jti?: string) =>
  new SignJWT({ sub, aud: "bellcast", exp, iat: seconds(), groups: [address], ...(jti && { jti }) })
    .setProtectedHeader({ alg: "HS256" })
    .sign(Buffer.from(siteSecret))

const places = () => tracesOf({ ...all.traces, broadcasts: broadcasts.slice(-1) })
/** Returns the places in which it looked. */
const nothingIsFound = async () => {
  const searched = await places()
  expect(secretsIn(searched, [...secrets])).toEqual([])
  expect(secretsIn(new Map([["errors", errors.join("\n")]]), [...secrets])).toEqual([])
  return searched
}

describe("nothing secret is left behind", () => {
  it("by tokens that a server verifies, whatever the server does", async () => {
    const { asked } = all
    const introspected = used("opaque-token-of-zoe")
    asked.tokens.set(introspected, { active: true, sub: address, groups: [address] })
    expect(await act({ authorization: `Bearer ${introspected}` })).toBe(202)
    const verified = used("account-token-of-zoe")
    asked.tokens.set(verified, { user: address, client_id: "c", scope: ["push"] })
    expect(await act({ authorization: `Bearer ${verified}` })).toBe(202)
    const moods: ReadonlyArray<Mood> = ["down", "garbage", "redirecting", "401", "500", "well"]
    for (const mood of moods) {
      asked.mood = mood
      const token = used(`token-while-the-server-is-${mood}`)
      expect(await act({ authorization: `Bearer ${token}` })).toBe(mood === "well" ? 401 : 503)
    }
    await nothingIsFound()
  })

  it("by users that a site signed, and by wrong signatures", async () => {
    expect(await act({ authorization: `Bearer ${used(await signed(address))}` })).toBe(202)
    const expired = used(await signed(address, seconds() - 10))
    const forged = used(`${(await signed("zoe")).slice(0, -20)}AAAAAAAAAAAAAAAAAAAA`)
    for (const token of [expired, forged])
      expect(await act({ authorization: `Bearer ${token}` })).toBe(401)
    await nothingIsFound()
  })

  it("by headers of a proxy, from the proxy and from somebody else", async () => {
    const headers = {
      "x-forwarded-user": address,
      "x-forwarded-groups": `editor,${address}`,
      "x-forwarded-email": address
    }
    expect(await act({ ...headers, "x-proxy-secret": proxySecret })).toBe(202)
    expect(await act({ ...headers, "x-proxy-secret": used("a guess of the secret") })).toBe(401)
    await nothingIsFound()
  })

  it("by Basic credentials, and by modules of an operator", async () => {
    const basic = Buffer.from(`${address}:${used("the password of zoe")}`).toString("base64")
    expect(await act({ authorization: `Basic ${used(basic)}` })).toBe(202)
    expect(await act({ authorization: `Acme ${used("acme-session-of-zoe")}` })).toBe(202)
    // One line in ten seconds: the failure that could say most comes first.
    for (const token of ["named-session-of-zoe", "thrown-session-of-zoe", "user-session-of-zoe"])
      expect(await act({ authorization: `Broken ${used(token)}` })).toBe(503)
    await nothingIsFound()
  })

  it("by tokens of servers that publish", async () => {
    const env = { BELLCAST_NATS_URL: all.nats.url }
    const args = ["token", "create", "shop", "--channel", "news", "--expires", "1h"]
    const token = (await runCli(args, env)).stdout.trimEnd()
    used(token.slice("bellcast_".length, -6))
    expect(await act({ authorization: `Bearer ${token}` })).toBe(202)
    expect(await act({ authorization: `Bearer ${token}x` })).toBe(401)
    const grant = ["permissions", "grant", "news", `portier:${address}`]
    expect((await runCli(grant, { ...env, ...secretEnvironment })).code).toBe(0)
    await nothingIsFound()
  })

  it("by the login pages of an issuer, with its codes and tokens", async () => {
    const cookies = new Map<string, string>()
    const callback = `/openid/openid/login?callback=${encodeURIComponent(page)}`
    const first = keep(await send({}, callback), cookies)
    const browser = new Map(cookies)
    for (const [, value] of browser) used(value)
    used(new URL(first).searchParams.get("state")!)
    const location = await follow(first, all.issuer.issuer, cookies)
    used(location.searchParams.get("code")!)
    const wrong = new URL(location)
    wrong.searchParams.set("code", used("a code that nobody gave"))
    for (const to of [wrong.href, location.href]) await get(to, new Map())
    const returned = await get(location.href, browser)
    expect(returned.status).toBe(307)
    await get(location.href, browser)
    const token = used(returned.headers.get("location")!.slice(page.length))
    expect(await act({ authorization: `Bearer ${token}` })).toBe(202)
    expect(await act({ authorization: `Bearer ${token}x` })).toBe(401)
    await nothingIsFound()
  })

  it("by logins by mail, with addresses, proofs and sessions", async () => {
    const cookies = new Map<string, string>()
    const path = `/portier/login?${new URLSearchParams({ email: address, redirect: page })}`
    const begun = keep(await send({ origin: new URL(page).origin }, path, "POST"), cookies)
    await send({}, path)
    await send({}, "/portier/login", "POST", { email: address, redirect: "https://evil.example" })
    await send({}, "/portier/login", "POST", { email: `${address} `, redirect: address })
    await send({}, "/portier/login", "POST", `{"email":"${address}"`)
    for (const [, value] of cookies) used(value)
    const nonce = used(new URL(begun).searchParams.get("nonce")!)
    const claims = { aud: all.origin, sub: address, iat: seconds(), nonce }
    const proof = used(await all.asked.token(claims, { typ: undefined }))
    const late = used(await all.asked.token({ ...claims, exp: seconds() - 10 }))
    const headers = { cookie: [...cookies].map((pair) => pair.join("=")).join("; ") }
    const verify = (fields: Headers) =>
      send(headers, `/portier/verify?${new URLSearchParams(fields)}`, "POST", fields)
    for (const wrong of [{ id_token: late }, { error: "x", error_description: address }])
      expect((await verify(wrong)).headers.get("location")).toMatch(/#error=(exp|server)/)
    const returned = await verify({ id_token: proof })
    expect((await verify({ id_token: proof })).headers.get("location")).toContain("#error=")
    const session = used(returned.headers.get("location")!.slice(page.length))
    expect(await act({ authorization: `Portier ${session}` })).toBe(202)
    expect(await act({ authorization: `Portier ${session}0` })).toBe(401)
    const atSecond = { headers: { authorization: `Portier ${session}` } }
    expect((await fetch(`${all.second.url}/subscriptions`, atSecond)).status).toBe(200)
    const searched = await nothingIsFound()
    expect(searched.get("audit")).toContain("portier:")
    expect(searched.get("stream KV_bellcast_cache")).toContain("session.")
  })

  it("by logins that return to the console, which needs no setting beside its own", async () => {
    const cookies = new Map<string, string>()
    const to = encodeURIComponent(`${consolePage}#token=`)
    const first = keep(await send({}, `/openid/openid/login?callback=${to}`), cookies)
    const location = await follow(first, all.issuer.issuer, new Map())
    used(location.searchParams.get("code")!)
    const returned = (await get(location.href, cookies)).headers.get("location")!
    expect(returned).toContain(`${consolePage}#token=`)
    expect(await act({ authorization: `Bearer ${used(returned.split("=")[1]!)}` })).toBe(202)
    const asked = new URLSearchParams({ email: address, redirect: `${consolePage}#token=` })
    expect((await send({}, `/portier/login?${asked}`)).status).toBe(200)
    await nothingIsFound()
  })

  it("by links to the console, and by their sessions", async () => {
    const link = async () => used(await signed(address, seconds() + 60, randomUUID()))
    const [token, late] = [await link(), used(await signed(address, seconds() - 1, randomUUID()))]
    const headers = { host: new URL(consolePage).host, "content-type": "application/json" }
    const exchange = async (given: string) => {
      const url = `${all.service.url}/console/session`
      const body = JSON.stringify({ data: { token: given } })
      const { body: response, statusCode } = await request(url, { method: "POST", headers, body })
      const text = await response.text()
      if (statusCode >= 400) errors.push(text)
      return statusCode < 400 ? (JSON.parse(text) as { data: { token: string } }).data.token : ""
    }
    const session = used(await exchange(token))
    for (const wrong of [token, late, `${token}x`, session]) expect(await exchange(wrong)).toBe("")
    expect(await act({ authorization: `Bearer ${session}` })).toBe(202)
    expect(await act({ authorization: `Bearer ${session}0` })).toBe(401)
    const lost = used(`console_signed-lost_${"0123456789abcdef".repeat(4)}`)
    const asked = all.asked.requests.length
    expect(await act({ authorization: `Bearer ${lost}` })).toBe(401)
    expect(all.asked.requests).toHaveLength(asked)
    const searched = await nothingIsFound()
    expect(searched.get("log 1")).toContain("login at the console")
  })

  it("by query strings, wherever a client puts a secret into one", async () => {
    const token = used(await signed("a-user-in-a-query"))
    const escaped = encodeURIComponent(`access_token=${token}`)
    for (const query of [
      `access_token=${token}`,
      token,
      escaped,
      `${token}=`,
      `${token}&_limit=1`,
      `a;code=${token}`,
      `_limit=1?code=${token}`,
      `_fields=${address}`,
      encodeURIComponent(address)
    ])
      for (const path of ["/subscriptions", "/subscriptions/", "/nowhere", "/openid/x/token"]) {
        await send({}, `${path}?${query}`)
        await fetch(`${all.origin}${path}?${query}`, { redirect: "manual" })
      }
    const requests = [{ path: `/subscriptions?${token}` }, { path: `/x?${escaped}` }]
    await send({}, "/batch", "POST", { requests })
    await nothingIsFound()
  })
})

it("would be found where the search looks", async () => {
  const planted = "planted-by-the-test-itself"
  const nc = await connect({ servers: all.nats.url })
  nc.publish("$KV.bellcast_cache.planted", JSON.stringify({ token: btoa(`:${planted}`) }))
  await nc.flush()
  await nc.close()
  // No secrets: they show that the logs, the metrics and the audit are searched.
  const shown = ["request.summary", "bellcast_authentications_total", "from rest by", planted]
  const files = all.nats.folder === undefined ? [] : ["files"]
  const found = async () => secretsIn(await places(), shown).map((each) => each.split(" as ")[0])
  await expect
    .poll(found, { timeout: 40_000 })
    .toEqual([
      `stream KV_bellcast_cache: ${planted}`,
      "metrics 1: bellcast_authentications_total",
      "log 1: request.summary",
      "metrics 2: bellcast_authentications_total",
      "log 2: request.summary",
      "audit: from rest by",
      ...files.map((each) => `${each}: ${planted}`)
    ])
})
