// In which order remote policies are asked about a token that one of them knew.
import { assert, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Settings } from "#config"
import { credentialsOf, makeTokenOwners } from "#identity/identity.ts"
import type { Policy } from "#identity/policy.ts"
import { IdentitySettings } from "#identity/settings.ts"

const policy = (name: string, bearer?: Policy["bearer"]): Policy => ({
  name,
  verifies: true,
  challenge: name,
  capability: { description: "", url: "" },
  identify: () => Effect.succeed(undefined),
  ...(bearer === undefined ? {} : { bearer })
})
const remote = (name: string) => policy(name, { kind: "remote" })
const [first, own, second, third] = [remote("a"), policy("own"), remote("b"), remote("c")]
const policies = [first, own, second, third]

const bearer = (token: string) => {
  const headers = { authorization: `Bearer ${token}` }
  return credentialsOf({
    headers,
    received: headers,
    address: "",
    fromTrustedProxy: false,
    isRepeated: () => false
  })
}

const settings = Layer.mergeAll(Settings.layer, IdentitySettings.layer).pipe(
  Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({})))
)

it.effect("the one that knew a token comes before the other remote ones, for a while", () =>
  Effect.gen(function* () {
    const { knew, order } = yield* makeTokenOwners
    const names = Effect.map(order(policies, bearer("t")), (ordered) =>
      ordered.map(({ name }) => name).join(" ")
    )
    assert.strictEqual(yield* names, "a own b c")
    yield* knew(policies, bearer("t"), second)
    assert.strictEqual(yield* names, "own b a c")
    assert.deepEqual(yield* order(policies, bearer("other")), policies)
    // Of one remote policy the order cannot change.
    assert.deepEqual(yield* order([own, second], bearer("t")), [own, second])

    // Using a token does not extend the time.
    yield* TestClock.adjust("4 minutes")
    yield* knew(policies, bearer("t"), second)
    yield* TestClock.adjust("90 seconds")
    assert.strictEqual(yield* names, "a own b c")

    yield* knew(policies, bearer("t"), first)
    yield* knew(policies, bearer("t"), own)
    assert.strictEqual(yield* names, "a own b c")
  }).pipe(Effect.provide(settings))
)
