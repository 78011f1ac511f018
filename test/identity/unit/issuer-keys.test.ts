// The keys of an issuer over time: fetched at most once per cooldown, used while the issuer is
// away, and never from somewhere that its discovery document must not name.
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, References } from "effect"
import { TestClock } from "effect/testing"
import { exportJWK, generateKeyPair, SignJWT } from "jose"
import type { ProviderResponse } from "#identity/provider/client.ts"
import { makeKeySet } from "#identity/provider/key-set.ts"
import { claimsOfIssuer } from "#identity/tokens/jwt.ts"
import { IdentityUnavailable } from "#identity/verdict.ts"

const issuer = "https://login.example.org"

/** An issuer whose keys carry the number of the fetch. `documents`: what replaces its responses. */
const issuerWith = (documents: Readonly<Record<string, unknown>> = {}) => {
  const asked = { fetches: 0, isAway: false }
  const responseTo = (url: string): ProviderResponse => {
    const isKeys = url.endsWith("/jwks")
    if (isKeys) asked.fetches += 1
    const json = isKeys
      ? { keys: [{ kid: String(asked.fetches) }] }
      : { issuer, jwks_uri: `${issuer}/jwks`, ...documents }
    return { status: 200, json }
  }
  const send = ({ url }: { readonly url: string }) =>
    asked.isAway
      ? Effect.fail(new IdentityUnavailable({ policy: "openid", cause: "ECONNREFUSED" }))
      : Effect.sync(() => responseTo(url))
  return { asked, send }
}

const kidOf = ({ keys }: { readonly keys: { readonly keys: ReadonlyArray<object> } }) =>
  (keys.keys[0] as { readonly kid: string }).kid

describe("the keys of an issuer", () => {
  it.effect("are fetched again for unknown keys, at most once in ten seconds", () =>
    Effect.gen(function* () {
      const { asked, send } = issuerWith()
      const keySet = yield* makeKeySet("openid", issuer, send)
      assert.strictEqual(kidOf(yield* keySet.current), "1")
      for (let i = 0; i < 100; i += 1) yield* keySet.refreshed(`made-up-${i}`)
      assert.strictEqual(asked.fetches, 2)
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(kidOf(yield* keySet.refreshed("3")), "3")
      for (let i = 0; i < 100; i += 1) yield* keySet.refreshed("made-up-0")
      assert.strictEqual(asked.fetches, 3)
    })
  )

  it.effect("are fetched once for callers that arrive together, wherever these are paused", () =>
    Effect.gen(function* () {
      for (const opsMax of [7, 8, 9, 10, 11, 12, 13]) {
        const { asked, send } = issuerWith()
        const { current } = yield* makeKeySet("openid", issuer, send)
        const callers = Array.from({ length: 10 }, () => current)
        yield* Effect.all(callers, { concurrency: "unbounded" }).pipe(
          Effect.provideService(References.MaxOpsBeforeYield, opsMax)
        )
        assert.strictEqual(asked.fetches, 1, String(opsMax))
      }
    })
  )

  it.effect("do not say that a key is unknown until they were fetched for it", () =>
    Effect.gen(function* () {
      const { send } = issuerWith()
      const keySet = yield* makeKeySet("openid", issuer, send)
      yield* keySet.refreshed("made-up")
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Effect.flip(keySet.refreshed("2")))._tag, "IdentityUnavailable")
      assert.strictEqual(kidOf(yield* keySet.refreshed("made-up")), "1")
      yield* TestClock.adjust("9 seconds")
      assert.strictEqual(kidOf(yield* keySet.refreshed("2")), "2")
    })
  )

  it.effect("say at once that a former key is gone", () =>
    Effect.gen(function* () {
      const { send } = issuerWith()
      const keySet = yield* makeKeySet("openid", issuer, send)
      yield* keySet.current
      yield* TestClock.adjust("1 second")
      yield* keySet.refreshed("2")
      yield* TestClock.adjust("1 second")
      assert.strictEqual(kidOf(yield* keySet.refreshed("1")), "2")
    })
  )

  it.effect("are fetched for an unknown key at once, however often the heartbeat asks", () =>
    Effect.gen(function* () {
      const { asked, send } = issuerWith()
      const keySet = yield* makeKeySet("openid", issuer, send)
      for (let i = 0; i < 5; i += 1) {
        yield* TestClock.adjust("10 seconds")
        assert.isTrue(yield* keySet.isUp)
        assert.isTrue(yield* keySet.isUp)
      }
      assert.strictEqual(asked.fetches, 5)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(kidOf(yield* keySet.refreshed("6")), "6")
    })
  )

  it.effect("serve for a day while the issuer is away, and then no longer", () =>
    Effect.gen(function* () {
      const { asked, send } = issuerWith()
      const keySet = yield* makeKeySet("openid", issuer, send)
      yield* keySet.current
      asked.isAway = true
      yield* TestClock.adjust("23 hours")
      assert.strictEqual(kidOf(yield* keySet.current), "1")
      assert.isFalse(yield* keySet.isUp)
      yield* TestClock.adjust("1 hour")
      assert.strictEqual((yield* Effect.flip(keySet.current))._tag, "IdentityUnavailable")
      asked.isAway = false
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(kidOf(yield* keySet.current), "2")
      assert.isTrue(yield* keySet.isUp)
    })
  )

  it.effect(
    "are unavailable to tokens with unknown keys, within seconds, while the issuer is silent",
    () =>
      Effect.gen(function* () {
        const { asked, send } = issuerWith()
        const keySet = yield* makeKeySet("openid", issuer, (request) =>
          asked.isAway ? Effect.never : send(request)
        )
        yield* keySet.current
        asked.isAway = true
        yield* TestClock.adjust("10 seconds")
        const first = yield* Effect.forkChild(Effect.flip(keySet.refreshed("new")))
        yield* TestClock.adjust("2 seconds")
        assert.strictEqual((yield* Fiber.join(first))._tag, "IdentityUnavailable")
        const later = yield* Effect.forkChild(Effect.flip(keySet.refreshed("new")))
        yield* TestClock.adjust("1 millis")
        assert.strictEqual((yield* Fiber.join(later))._tag, "IdentityUnavailable")
        assert.strictEqual(kidOf(yield* keySet.current), "1")
      })
  )

  it.effect("are kept when the issuer publishes none", () =>
    Effect.gen(function* () {
      const { send } = issuerWith()
      const none = { status: 200, json: { keys: [] } }
      let isEmpty = false
      const keySet = yield* makeKeySet("openid", issuer, (request) =>
        isEmpty && request.url.endsWith("/jwks") ? Effect.succeed(none) : send(request)
      )
      yield* keySet.current
      isEmpty = true
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* Effect.flip(keySet.refreshed("new")))._tag, "IdentityUnavailable")
      assert.strictEqual(kidOf(yield* keySet.current), "1")
      assert.isFalse(yield* keySet.isUp)
    })
  )

  for (const [name, documents] of Object.entries({
    "another issuer": { issuer: "https://evil.example.org" },
    "keys that are not fetched by https": { jwks_uri: "http://login.example.com/jwks" },
    "no keys": { jwks_uri: undefined },
    "a userinfo endpoint that is no URL": { userinfo_endpoint: 7 }
  }))
    it.effect(`are not taken from a document with ${name}`, () =>
      Effect.gen(function* () {
        const { asked, send } = issuerWith(documents)
        const keySet = yield* makeKeySet("openid", issuer, send)
        assert.strictEqual((yield* Effect.flip(keySet.current))._tag, "IdentityUnavailable")
        assert.strictEqual(asked.fetches, 0)
      })
    )
})

/** A key pair without a `kid`, and tokens that it signs. */
const pairWithoutKid = Effect.promise(async () => {
  const { privateKey, publicKey } = await generateKeyPair("ES256", { extractable: true })
  const tokenOf = (sub: string, exp?: number) => {
    const token = new SignJWT({ sub, ...(exp === undefined ? {} : { exp }) })
    return token.setProtectedHeader({ alg: "ES256" }).sign(privateKey)
  }
  return { key: await exportJWK(publicKey), tokenOf }
})

describe("a token without the name of its key", () => {
  // With several keys each is tried.
  for (const former of [1, 2])
    it.effect(`is accepted at once with a new key that replaces ${former}, but no forged one`, () =>
      Effect.gen(function* () {
        const [next, forger, ...before] = yield* Effect.all(
          Array.from({ length: 2 + former }, () => pairWithoutKid)
        )
        let keys = before.map(({ key }) => key)
        let fetches = 0
        const keySet = yield* makeKeySet("openid", issuer, ({ url }) => {
          if (!url.endsWith("/jwks"))
            return Effect.succeed({ status: 200, json: { issuer, jwks_uri: `${issuer}/jwks` } })
          fetches += 1
          return Effect.succeed({ status: 200, json: { keys } })
        })
        const claimsFor = (token: Promise<string>) =>
          Effect.flatMap(
            Effect.promise(() => token),
            (text) => claimsOfIssuer(text, keySet)
          )
        yield* TestClock.adjust("1 hour")
        assert.deepStrictEqual(yield* claimsFor(before[0]!.tokenOf("ann")), { sub: "ann" })
        assert.isString(yield* claimsFor(before[0]!.tokenOf("ann", 1)))
        assert.strictEqual(fetches, 1)
        keys = [next!.key, ...keys.slice(1)]
        assert.deepStrictEqual(yield* claimsFor(next!.tokenOf("ann")), { sub: "ann" })
        for (let n = 0; n < 10; n += 1)
          assert.strictEqual(yield* claimsFor(forger!.tokenOf("ann")), "the signature is wrong")
        assert.strictEqual(fetches, 2)
      })
    )
})
