// What a setting that is a whole number takes, and what it says of anything else.
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { everySetting } from "#settings/every-setting.ts"
import { layerOf, readSource } from "#settings/source.ts"
import { within } from "#settings/values.ts"

const read = (text: string) =>
  Effect.runSync(
    everySetting({ pause: within("BELLCAST_PAUSE", -1, 1_000) }).pipe(
      Effect.map(({ pause }) => pause),
      Effect.catch(({ message }) => Effect.succeed(message.split("\n")[1])),
      Effect.provide(layerOf(readSource({ BELLCAST_CONFIG: "/dev/null", BELLCAST_PAUSE: text })))
    )
  )

it.for([
  ["-1", -1],
  ["1000", 1_000],
  [" 7 ", 7],
  ["1e3", 1_000]
] as const)("%j is %s", ([text, value]) => {
  assert.strictEqual(read(text), value)
})

it.for(["-2", "1001", "1.5", "abc", " ", "NaN", "Infinity", "1,000", "7 s", "1_000"])(
  "%j is none, and the bounds are told",
  (text) => {
    assert.strictEqual(
      read(text),
      `BELLCAST_PAUSE: Expected a whole number from -1 to 1000, not ${JSON.stringify(text)}`
    )
  }
)

it("shows no more of a wrong value than a line takes", () => {
  assert.strictEqual(
    read("x".repeat(5_000)),
    `BELLCAST_PAUSE: Expected a whole number from -1 to 1000, not "${"x".repeat(40)}..."`
  )
})
