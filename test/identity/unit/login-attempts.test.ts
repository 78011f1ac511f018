// How often a client may make the login pages of an issuer ask its token endpoint in vain, and how
// late a browser may come back.
import { assert, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { Settings } from "#config"
import { openidPages } from "#identity/login/openid-login.ts"
import { IdentitySettings } from "#identity/settings.ts"
import { IdentityUnavailable, invalidToken } from "#identity/verdict.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { makeDiskBuckets } from "#nats/kv/disk-buckets.ts"

const issuer = "https://login.example.org"
const keys = Effect.succeed({
  discovered: {
    issuer,
    jwks_uri: `${issuer}/keys`,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`
  },
  keys: { keys: [] },
  fetchedAt: 0
})
const login = {
  name: "openid",
  issuer,
  audience: [],
  clientId: "pages",
  clientSecret: Option.none(),
  callbackHosts: ["app.example.org"],
  scopes: ["openid"],
  parameters: [],
  verified: () => Effect.succeed(invalidToken)
}
const services = Layer.merge(
  IdentitySettings.layer,
  Layer.merge(
    Settings.layer,
    Layer.effect(
      Buckets,
      Effect.map(makeDiskBuckets, ({ buckets }) => buckets)
    )
  )
).pipe(
  Layer.provide(
    ConfigProvider.layer(
      ConfigProvider.fromUnknown({
        BELLCAST_HTTP_SCHEME: "https",
        BELLCAST_HTTP_HOST: "push.example.org",
        BELLCAST_AUTH_FAILURES_PER_ADDRESS_PER_MINUTE_MAX: "3"
      })
    )
  )
)

/** The ends of 5 logins of one address, while the token endpoint responds with this status. */
const outcomesWith = Effect.fnUntraced(function* (status: number) {
  let requests = 0
  const send = () =>
    Effect.sync(() => {
      requests += 1
      return { status, json: { error: "invalid_grant" } }
    })
  const keySet = { current: keys, refreshed: () => keys, isUp: Effect.succeed(true) }
  const pages = yield* openidPages(login, keySet, send)
  const visit = {
    rootUrl: "https://push.example.org/v1",
    address: "192.0.2.1",
    page: ""
  }
  const outcomes: Array<string> = []
  for (let i = 0; i < 5; i += 1) {
    const fields = { callback: "https://app.example.org/#token=" }
    const { location, setCookie } = yield* pages.begin({ ...visit, cookies: undefined, fields })
    const state = new URL(location).searchParams.get("state")!
    const returned = { ...visit, cookies: setCookie.split(";")[0], fields: { state, code: "?" } }
    outcomes.push((yield* Effect.flip(pages.finish(returned)))._tag)
  }
  return { outcomes, requests }
})

it.effect("a browser that comes back too late is sent to its page, for an hour", () =>
  Effect.gen(function* () {
    const keySet = { current: keys, refreshed: () => keys, isUp: Effect.succeed(true) }
    const pages = yield* openidPages(login, keySet, () => Effect.never)
    const fields = { callback: "https://app.example.org/#token=" }
    const visit = { rootUrl: "https://push.example.org/v1", address: "192.0.2.1", page: "" }
    const { location, setCookie } = yield* pages.begin({ ...visit, cookies: undefined, fields })
    assert.include(setCookie, "; Max-Age=3600;")
    const state = new URL(location).searchParams.get("state")!
    const cookies = setCookie.split(";")[0]
    yield* TestClock.adjust("15 minutes")
    const error = yield* Effect.flip(
      pages.finish({ ...visit, cookies, fields: { state, code: "?" } })
    )
    assert.deepInclude(error, { _tag: "LoginFailed", code: "expired" })
    const back = pages.returnOf(cookies, error)
    assert.match(back!, /^https:\/\/app\.example\.org\/#error=expired&error_description=This%20/)
    assert.isUndefined(pages.returnOf(undefined, error))
  }).pipe(Effect.provide(services))
)

it.effect("an outage of the issuer hides no error of its own, and costs no attempt", () =>
  Effect.gen(function* () {
    const asked = { isAway: false, requests: 0 }
    const current = Effect.suspend(() =>
      asked.isAway ? new IdentityUnavailable({ policy: "openid", cause: "ECONNREFUSED" }) : keys
    )
    const keySet = { current, refreshed: () => current, isUp: Effect.succeed(true) }
    const pages = yield* openidPages(login, keySet, () =>
      Effect.sync(() => {
        asked.requests += 1
        return { status: 400, json: { error: "invalid_grant" } }
      })
    )
    const visit = { rootUrl: "https://push.example.org/v1", address: "192.0.2.1", page: "" }
    const end = Effect.fnUntraced(function* (isAway: boolean, response: Record<string, string>) {
      asked.isAway = false
      const fields = { callback: "https://app.example.org/#token=" }
      const { location, setCookie } = yield* pages.begin({ ...visit, cookies: undefined, fields })
      const state = new URL(location).searchParams.get("state")!
      asked.isAway = isAway
      const cookies = setCookie.split(";")[0]
      return yield* Effect.flip(pages.finish({ ...visit, cookies, fields: { state, ...response } }))
    })
    assert.deepInclude(yield* end(true, { error: "access_denied" }), {
      _tag: "LoginRefused",
      code: "access_denied"
    })
    for (let i = 0; i < 5; i += 1)
      assert.strictEqual((yield* end(true, { code: "?" }))._tag, "IdentityUnavailable")
    assert.strictEqual((yield* end(false, { code: "?" }))._tag, "LoginFailed")
    assert.strictEqual(asked.requests, 1)
  }).pipe(Effect.provide(services))
)

const twice = ["TooManyFailures", "TooManyFailures"]

it.effect("codes that bring nothing are limited, however the token endpoint fails", () =>
  Effect.gen(function* () {
    const refused = ["LoginFailed", "LoginFailed", "LoginFailed", ...twice]
    assert.deepStrictEqual(yield* outcomesWith(400), { outcomes: refused, requests: 3 })
    // A code can be such that the server fails: so a failure counts, too.
    const failed = Array.from({ length: 3 }, () => "IdentityUnavailable")
    for (const status of [403, 500])
      assert.deepStrictEqual(yield* outcomesWith(status), {
        outcomes: [...failed, ...twice],
        requests: 3
      })
  }).pipe(Effect.provide(services))
)
