// Logins by mail through two gateways of one service: where they begin, and how long they count.
import { afterAll, beforeAll, expect, it } from "vitest"
import {
  errorOf,
  type Portier,
  type PortierGateway,
  page,
  startPortier,
  tokenIn
} from "#test/identity/portier.ts"

const sessionSeconds = 2
const loginsMax = 4

let portier: Portier
/** Sessions that it opens are short, and it allows few logins of one client. */
let second: PortierGateway

beforeAll(async () => {
  portier = await startPortier("gateway,projection,fanout,delivery,tally", {
    BELLCAST_CHANNEL_WRITE_PRINCIPALS: "portier:Zoe@example.org"
  })
  second = await portier.another({
    BELLCAST_AUTH_PORTIER_SESSION_TTL_SECONDS: String(sessionSeconds),
    BELLCAST_AUTH_PORTIER_LOGINS_PER_CLIENT_PER_HOUR_MAX: String(loginsMax)
  })
})
afterAll(() => portier[Symbol.asyncDispose]())

const statusAt = async ({ service }: PortierGateway, token: string) => {
  const headers = { authorization: `Portier ${token}` }
  return (await fetch(`${service.url}/subscriptions`, { headers })).status
}

it("begins at one gateway, ends at the other, counts once, and is known at both", async () => {
  const { begun, proof } = portier
  const { cookie, nonce } = await begun()
  const fields = { id_token: await proof(nonce) }
  const returned = await second.verify(cookie, fields)
  expect(returned.status).toBe(302)
  expect(await errorOf(await portier.verify(cookie, fields))).toEqual([400, 400, "invalid-login"])
  const token = tokenIn(returned)
  expect([await statusAt(portier, token), await statusAt(second, token)]).toEqual([200, 200])
})

const crossSite = { "sec-fetch-site": "cross-site" }
const foreign: ReadonlyArray<Readonly<Record<string, string>>> = [
  crossSite,
  { ...crossSite, origin: "https://evil.example" },
  { ...crossSite, origin: "null" },
  { ...crossSite, referer: "https://evil.example/app.example.org" },
  { "sec-fetch-site": "same-site", referer: "https://evil.example.org/" },
  { origin: "https://evil.example" },
  { origin: "http://app.example.org" },
  { referer: "https://evil.example/" },
  // A link in a mail, or a browser that says nothing.
  { "sec-fetch-site": "none" },
  { "sec-fetch-site": "same-origin" },
  {}
]
const own: typeof foreign = [
  { ...crossSite, origin: "https://app.example.org" },
  { ...crossSite, referer: "https://app.example.org/" },
  { referer: "https://app.example.org/" }
]

it("begins at a page of ours, as one of others could end it with a mail of its own", async () => {
  const fields = new URLSearchParams({ email: "mallory@example.org", redirect: page })
  const url = `${portier.service.url}/portier/login`
  const beginFrom = (headers: Readonly<Record<string, string>>) =>
    fetch(url, { method: "POST", headers, body: fields, redirect: "manual" })
  for (const headers of foreign) {
    const response = await beginFrom(headers)
    expect(response.headers.get("set-cookie"), JSON.stringify(headers)).toBeNull()
    expect(await errorOf(response)).toEqual([400, 400, "invalid-request"])
  }
  for (const headers of [...own, { origin: portier.origin }, { referer: `${portier.origin}/` }])
    expect((await beginFrom(headers)).status, JSON.stringify(headers)).toBe(302)
})

it("asks first when it comes by a link, whoever has it", async () => {
  const email = "o'&mallory@example.org"
  const fields = new URLSearchParams({ email, redirect: page })
  for (const headers of [...foreign, ...own]) {
    const url = `${portier.service.url}/portier/login?${fields}`
    const response = await fetch(url, { headers, redirect: "manual" })
    expect([response.status, response.headers.get("set-cookie")]).toEqual([200, null])
    expect(response.headers.get("content-type")).toMatch(/^text\/html/)
    expect(response.headers.get("cache-control")).toMatch(/no-store/)
    expect(response.headers.get("content-security-policy")).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+'; form-action [^;]+; frame-ancestors 'none'; /
    )
    const text = await response.text()
    expect(text).toContain("Log in at app.example.org?")
    expect(text).toContain("<bdi>o'&amp;mallory@example.org</bdi>")
  }
})

it("ends by a new key of the broker at once, though the heartbeat fetched the keys", async () => {
  const { begun, broker, proof, service, verify } = portier
  const { cookie, nonce } = await begun()
  expect((await fetch(`${service.url}/__heartbeat__`)).status).toBe(200)
  await broker.rotate("EdDSA", "third", { keeps: true })
  expect((await verify(cookie, { id_token: await proof(nonce) })).status).toBe(302)
})

it("is 503, and not wrong, while the keys may not be fetched again for a new one", async () => {
  const { begun, broker, proof, verify } = portier
  const { cookie, nonce } = await begun()
  await verify(cookie, { id_token: await proof(nonce, {}, { kid: "made-up" }) })
  await broker.rotate("EdDSA", "fourth", { keeps: true })
  const fields = { id_token: await proof(nonce) }
  const early = await verify(cookie, fields)
  expect(Number(early.headers.get("retry-after"))).toBeGreaterThan(0)
  expect(await errorOf(early)).toEqual([503, 503, "unavailable"])
  const later = async () => (await verify(cookie, fields)).status
  await expect.poll(later, { timeout: 40_000, interval: 500 }).toBe(302)
})

it("ends a session at both gateways when its time is over, however it is used", async () => {
  const { begun, proof } = portier
  const { cookie, nonce } = await begun()
  const opened = performance.now()
  const token = tokenIn(await second.verify(cookie, { id_token: await proof(nonce) }))
  const statuses = async () => [await statusAt(portier, token), await statusAt(second, token)]
  expect(await statuses()).toEqual([200, 200])
  await expect.poll(statuses, { interval: 100 }).toEqual([401, 401])
  expect(performance.now() - opened).toBeGreaterThan(sessionSeconds * 1000 - 100)
})

it("refuses a client that begins too many logins, whatever their addresses", async () => {
  const begin = (i: number) => second.begin(`someone${i}@example.org`)
  for (let i = 0; i < loginsMax; i += 1) expect((await begin(i)).status).toBe(302)
  const refused = await begin(loginsMax)
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(60)
  expect(await errorOf(refused)).toEqual([429, 429, "too-many-logins"])
})
