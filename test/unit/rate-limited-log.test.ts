// A fault that repeats does not fill the log: one line in ten seconds, which counts the others.
import { assert, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { TestClock } from "effect/testing"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"

it.effect(
  "writes the first case at once, and then one in ten seconds with how many there were",
  () =>
    Effect.gen(function* () {
      const lines: Array<unknown> = []
      const logger = Logger.make<unknown, void>(
        ({ logLevel, message }) => void lines.push([logLevel, message])
      )
      const tell = makeRateLimitedLog("it stopped", Effect.logError)
      const fortyASecond = tell({ reason: "full" }).pipe(
        Effect.andThen(TestClock.adjust("25 millis")),
        Effect.repeat({ times: 799 })
      )
      yield* fortyASecond.pipe(Effect.provide(Logger.layer([logger])))
      assert.deepStrictEqual(lines, [
        ["Error", ["it stopped", { reason: "full", count: 1 }]],
        ["Error", ["it stopped", { reason: "full", count: 400 }]]
      ])
    })
)
