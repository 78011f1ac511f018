// Many callers at once, in front of two gateways that share NATS: how often a token is verified and
// how long a verdict holds, and what servers that do not respond cost their own callers and others.
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { type IdentityProvider, startIdentityProvider } from "#test/identity/provider.ts"
import { startNats, type TestNats } from "#test/nats.ts"
import { connectAdmin } from "#test/nats-admin.ts"
import { type Service, startService } from "#test/service.ts"

const ttlMillis = 4_000
/** The longest identification, 7 s, and time for a busy machine. */
const boundMillis = 13_000
const heartbeatSeconds = 2

let nats: TestNats
let one: Service
let two: Service
let opaque: IdentityProvider
let slow: IdentityProvider
let issuer: IdentityProvider
let away: IdentityProvider

const environment = () => ({
  // The tests play clients of addresses of their own.
  BELLCAST_TRUSTED_PROXIES: "127.0.0.1",
  BELLCAST_AUTH_POLICIES: "oauth oauth-slow openid openid-info openid-away",
  BELLCAST_AUTH_VERIFICATION_TTL_SECONDS: String(ttlMillis / 1_000),
  BELLCAST_HEARTBEAT_TIMEOUT_SECONDS: String(heartbeatSeconds),
  BELLCAST_AUTH_OAUTH_INTROSPECTION_URL: `${opaque.url}/introspect`,
  BELLCAST_AUTH_OAUTH_CLIENT_ID: "bellcast",
  BELLCAST_AUTH_OAUTH_CLIENT_SECRET: "secret",
  BELLCAST_AUTH_OAUTH_SLOW_VERIFY_URL: slow.url,
  BELLCAST_AUTH_OAUTH_SLOW_REQUIRED_SCOPES: "push",
  BELLCAST_AUTH_OPENID_ISSUER: issuer.url,
  BELLCAST_AUTH_OPENID_AUDIENCE: "bellcast",
  BELLCAST_AUTH_OPENID_INFO_ISSUER: issuer.url,
  BELLCAST_AUTH_OPENID_INFO_AUDIENCE: "info",
  BELLCAST_AUTH_OPENID_INFO_USERINFO: "true",
  BELLCAST_AUTH_OPENID_AWAY_ISSUER: away.url,
  BELLCAST_AUTH_OPENID_AWAY_AUDIENCE: "bellcast"
})

beforeAll(async () => {
  nats = await startNats({ syncAlways: false })
  ;[opaque, slow, issuer, away] = [
    await startIdentityProvider(),
    await startIdentityProvider(),
    await startIdentityProvider(),
    await startIdentityProvider()
  ]
  const start = (roles: string) => startService({ natsUrl: nats.url, roles, env: environment() })
  ;[one, two] = await Promise.all([start("gateway,projection"), start("gateway")])
})
afterAll(async () => {
  await Promise.all([one.stop(), two.stop()])
  const others = [opaque, slow, issuer, away, nats]
  await Promise.all(others.map((each) => each[Symbol.asyncDispose]()))
})

const timed = async (authorization: string, gateway: Service, from = 0) => {
  const address = `198.51.${from >> 8}.${from & 255}`
  const sentAt = Date.now()
  const began = performance.now()
  const { headers, status } = await fetch(`${gateway.url}/subscriptions`, {
    headers: { authorization, "x-forwarded-for": address }
  })
  const retryAfter = headers.get("retry-after")
  return { status, sentAt, retryAfter, millis: performance.now() - began }
}
const statusOf = async (token: string, gateway = one, from = 0) =>
  (await timed(`Bearer ${token}`, gateway, from)).status

let made = 0
/** A token that the server of `oauth` knows. */
const opaqueToken = (members: Readonly<Record<string, unknown>> = {}): string => {
  made += 1
  opaque.tokens.set(`token-${made}`, { active: true, sub: `user-${made}`, ...members })
  return `token-${made}`
}

/** Whether the gateways share the verdict on such a token. */
const isShared = async (token: string): Promise<boolean> => {
  await using admin = await connectAdmin(nats.url)
  const { streams } = admin.jsm
  const filter = { subjects_filter: "$KV.bellcast_cache.verification.>" }
  const { state } = await streams.info("KV_bellcast_cache", filter)
  const entries = await Promise.all(
    Object.keys(state.subjects ?? {}).map((subject) =>
      streams.getMessage("KV_bellcast_cache", { last_by_subj: subject })
    )
  )
  return entries.some((entry) => entry?.string().includes(`"${token.replace("token", "user")}"`))
}

/** Uses a token all the time until it is refused. Returns when the last good use was sent. */
const lastGood = async (token: string, gateway: Service): Promise<number> => {
  let last = 0
  while (true) {
    const { sentAt, status } = await timed(`Bearer ${token}`, gateway)
    // 503: the server that would have to be asked next does not respond.
    if (status === 401 || status === 503) return last
    expect(status).toBe(200)
    last = sentAt
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const many = <A>(count: number, make: (i: number) => Promise<A>): Promise<ReadonlyArray<A>> =>
  Promise.all(Array.from({ length: count }, (_, i) => make(i)))

it("a new token in 400 requests at once is verified once by each gateway", async () => {
  const token = opaqueToken()
  const begin = performance.now()
  const statuses = await many(400, (i) => statusOf(token, i % 2 === 0 ? one : two, i))
  expect(new Set(statuses)).toEqual(new Set([200]))
  expect(opaque.count("/introspect")).toBeGreaterThanOrEqual(1)
  // A slow machine takes longer than a verdict lives.
  const lifetimes = Math.ceil((performance.now() - begin) / ttlMillis)
  expect(opaque.count("/introspect")).toBeLessThanOrEqual(2 * lifetimes)
})

/** The times of 100 callers, or until an end: four at a time, half of them with new tokens. */
const timesOfOthers = async (isOver = () => false): Promise<ReadonlyArray<number>> => {
  const known = await issuer.token()
  const rows = await many(4, async () => {
    const times: Array<number> = []
    for (let i = 0; i < 25 && !isOver(); i += 1) {
      const token = i % 2 === 0 ? known : opaqueToken()
      const { millis, status } = await timed(`Bearer ${token}`, one)
      expect(status).toBe(200)
      times.push(millis)
    }
    return times
  })
  return rows.flat()
}
const p99 = (times: ReadonlyArray<number>): number =>
  [...times].sort((a, b) => a - b)[Math.floor(times.length * 0.99)]!

// At once, as they wait: each has tokens of its own.
describe.concurrent("a verdict", () => {
  it("is shared, and ends after its lifetime however it is used", async () => {
    const token = opaqueToken()
    expect(await statusOf(token)).toBe(200)
    const verifiedBy = Date.now()
    opaque.tokens.delete(token)
    const used = lastGood(token, one)
    await expect.poll(() => isShared(token), { timeout: ttlMillis / 2 }).toBe(true)
    // Only the verdict of the other gateway can be good.
    expect(await statusOf(token, two)).toBe(200)
    for (const last of [await lastGood(token, two), await used])
      expect(last).toBeLessThan(verifiedBy + ttlMillis + 200)
  })

  it("ends in the second in which the token does", async () => {
    const exp = Math.floor(Date.now() / 1_000) + 2
    const token = opaqueToken({ exp })
    for (const last of await Promise.all([lastGood(token, one), lastGood(token, two)])) {
      expect(last).toBeGreaterThan(0)
      expect(last).toBeLessThan((exp + 1) * 1_000)
    }
  })

  it("of another policy comes as fast beside a server that does not respond", async () => {
    await timesOfOthers()
    const without = p99(await timesOfOthers())
    slow.mood = "silent"
    let ended = 0
    const waiting = many(150, async (i) => {
      const status = await statusOf(`unknown-${i}`, one, i)
      ended += 1
      return status
    })
    // As many as a gateway asks at a time.
    const isBusy = () => expect(slow.count("/v1/verify")).toBeGreaterThanOrEqual(16)
    await vi.waitFor(isBusy, { interval: 10, timeout: 3_000 })
    const times = await timesOfOthers(() => ended > 0)
    const beside = p99(times)
    // Far more than would fit into the time of one that waits.
    expect(times.length).toBeGreaterThan(20)
    console.log(
      `p99 ${beside.toFixed(1)} ms beside 150 callers of a silent server, ` +
        `${without.toFixed(1)} ms without: ${(beside / without).toFixed(1)} times`
    )
    expect(new Set(await waiting)).toEqual(new Set([503]))
  })
})

describe("servers that do not respond", () => {
  it("cost their callers a 503 within seconds, whatever their kind", async () => {
    const info = await issuer.token({ aud: "info" })
    const held = opaqueToken()
    issuer.userinfo = { sub: "alice" }
    expect([await statusOf(info), await statusOf(held)]).toEqual([200, 200])
    for (const each of [opaque, slow, issuer, away]) each.mood = "silent"
    slow.requests.length = 0
    const began = performance.now()
    const heartbeat = fetch(`${one.url}/__heartbeat__`).then(async (response) => ({
      view: await response.json(),
      millis: performance.now() - began
    }))
    const kinds = [
      "Bearer unknown-to-both",
      `Bearer ${await issuer.token({ aud: "info", jti: "another" })}`,
      `Bearer ${await away.token()}`
    ]
    const hundreds = many(400, (i) =>
      timed(`Bearer piled-${i}`, i % 2 === 0 ? one : two, i).then(({ status }) => status)
    )
    const answers = await Promise.all(kinds.map((kind) => timed(kind, one)))
    for (const [i, { millis, retryAfter, status }] of answers.entries()) {
      expect([kinds[i], status, retryAfter]).toEqual([kinds[i], 503, "3"])
      expect(millis, kinds[i]).toBeLessThan(boundMillis)
    }
    expect(new Set(await hundreds)).toEqual(new Set([503]))
    // If they were verified in groups of 64, one after the other, this would take 24 s or more.
    expect(performance.now() - began).toBeLessThan(1.5 * boundMillis)
    // Two tries for each would be 800.
    expect(slow.count("/v1/verify")).toBeLessThan(300)

    const { millis, view } = await heartbeat
    expect(view).toMatchObject({ storage: true, cache: true, permission: true })
    expect(view).toMatchObject({ oauth: false, "oauth-slow": false, "openid-away": false })
    // One deadline for all: one after the other they would take 8 s.
    expect(millis).toBeLessThan(3.5 * heartbeatSeconds * 1_000)

    for (const each of [opaque, slow, issuer]) each.mood = "well"
    await expect.poll(() => statusOf(opaqueToken()), { timeout: boundMillis }).toBe(200)
  })
})
