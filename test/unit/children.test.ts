// The children of a process that delivers: when they begin, what becomes of those that end, and how
// the bounds are divided meanwhile. Time is that of the test; the processes are real.
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { setImmediate as turn } from "node:timers/promises"
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Logger from "effect/Logger"
import * as Metric from "effect/Metric"
import { TestClock } from "effect/testing"
import { makeChildren } from "#children/children.ts"
import { deathsMax, restMillis } from "#children/processes.ts"
import { childrenOf } from "../support/children.ts"

const resting = join(import.meta.dirname, "../support/resting-child.ts")
const ending = join(import.meta.dirname, "../support/ending-child.ts")
const missing = "/nowhere/node"

const context = Context.empty()
const attempts = Metric.counter("bellcast_push_attempts_total", {
  attributes: { result: "accepted", host: "children.test" },
  incremental: true
})

interface Line {
  readonly level: string
  readonly text: string
  readonly [field: string]: unknown
}

const running = (): ReadonlyArray<number> => childrenOf(process.pid)

/** Two children of this process, what is logged of them, and how a bound of 90 was divided. */
const started = Effect.fnUntraced(function* (program: string, isStopRequested = () => false) {
  const lines: Array<Line> = []
  const logger = Logger.make<unknown, void>(({ logLevel, message }) => {
    const [text, fields] = Array.isArray(message) ? message : [message]
    lines.push({ ...fields, level: logLevel, text: String(text) })
  })
  const { group, supervised } = makeChildren({
    processes: 3,
    settings: {},
    program,
    isStopRequested
  })
  /** The parts, and how many children ran when this process kept to them. */
  const parts: Array<readonly [number, number]> = []
  yield* group.divide(Effect.sync(() => parts.push([group.part(90), running().length])))
  yield* Effect.provide(supervised, Logger.layer([logger]))
  const says = (text: string) => lines.filter((line) => line.text.includes(text))
  /** Lets time pass, second by second, until something holds that real processes do. */
  const until = (holds: () => boolean, second = TestClock.adjust("1 second")) =>
    Effect.gen(function* () {
      const end = performance.now() + 20_000
      while (!holds()) {
        assert.isBelow(performance.now(), end, `not in time: ${JSON.stringify(lines)}`)
        yield* second
        yield* Effect.promise(() => turn())
      }
    })
  /** A second in which this process is busy with pushes. */
  const busySecond = Effect.suspend(() => {
    attempts.updateUnsafe(1_000, context)
    for (const begin = performance.now(); performance.now() - begin < 50; );
    return TestClock.adjust("1 second")
  })
  const begun = Effect.gen(function* () {
    const before = says("more processes deliver").length
    for (let n = 0; says("more processes deliver").length === before && n < 50; n++)
      yield* busySecond
    assert.lengthOf(says("more processes deliver"), before + 1)
  })
  return { group, parts, says, until, busySecond, begun }
})

describe.skipIf(process.platform !== "linux")("children of a process that delivers", () => {
  it.effect("that the system refuses are tried five times, and again after ten minutes", () =>
    Effect.gen(function* () {
      const { execPath } = process
      yield* Effect.addFinalizer(() => Effect.sync(() => Object.assign(process, { execPath })))
      process.execPath = missing
      const { begun, busySecond, parts, says, until } = yield* started(resting)
      yield* begun
      yield* until(() => parts.length === 3)
      const again = says("is started again")
      assert.isAtLeast(again.length, deathsMax - 1)
      for (const { level, reason } of again)
        assert.deepEqual([level, reason], ["Warn", `spawn ${missing} ENOENT`])
      const [last] = says(`ended ${deathsMax} times in a row: this one delivers alone for ten`)
      assert.equal(last?.level, "Error")
      assert.deepEqual(parts, [
        [90, 0],
        [30, 0],
        [90, 0]
      ])

      process.execPath = execPath
      yield* TestClock.adjust(restMillis - 20_000)
      for (let n = 0; n < 5; n++) yield* busySecond
      assert.lengthOf(says("more processes deliver"), 1, "they began within ten minutes")
      yield* begun
      yield* until(() => running().length === 2)
    })
  )

  it.effect("that end by themselves are started again, and the log says how they ended", () =>
    Effect.gen(function* () {
      const { begun, busySecond, says, until } = yield* started(ending)
      yield* begun
      // A process at rest would end its children before a real one has started and ended.
      yield* until(() => says("is started again").length >= 4, busySecond)
      const ends = says("is started again").map(({ code, process }) => `${process} ${code}`)
      assert.includeMembers(ends, ["delivery-2 3", "delivery-3 3"])
    })
  )

  it.effect("end five minutes after they were needed, and the bounds are whole again then", () =>
    Effect.gen(function* () {
      const { begun, group, parts, says, until } = yield* started(resting)
      yield* begun
      yield* until(() => running().length === 2)
      assert.equal(group.processes(), 3)
      yield* TestClock.adjust("4 minutes")
      assert.lengthOf(running(), 2)
      yield* until(() => parts.length === 3)
      assert.deepEqual(parts, [
        [90, 0],
        [30, 0],
        [90, 0]
      ])
      assert.equal(group.processes(), 1)
      assert.lengthOf(says("is started again"), 0)
    })
  )

  it.effect("have the flags of their parent, but no file of variables, which it has read", () =>
    Effect.gen(function* () {
      const { execArgv } = process
      yield* Effect.addFinalizer(() => Effect.sync(() => Object.assign(process, { execArgv })))
      const files = ["--env-file", ".env", "--env-file-if-exists", "a", "--env-file=b"]
      process.execArgv = ["--no-deprecation", ...files, "--trace-uncaught"]
      const { begun, until } = yield* started(resting)
      yield* begun
      yield* until(() => running().length === 2)
      const [first] = running()
      const [, ...args] = readFileSync(`/proc/${first}/cmdline`, "utf8").split("\0")
      assert.deepEqual(args.slice(0, 3), ["--no-deprecation", "--trace-uncaught", resting])
    })
  )

  it.effect("begin once their parent keeps to its part of every bound", () =>
    Effect.gen(function* () {
      const { begun, busySecond, group, until } = yield* started(resting)
      const keepsTo = yield* Latch.make(true)
      yield* group.divide(keepsTo.await)
      yield* keepsTo.close
      yield* begun
      yield* busySecond
      yield* Effect.promise(() => turn())
      assert.lengthOf(running(), 0)
      yield* keepsTo.open
      yield* until(() => running().length === 2)
    })
  )

  it.effect("that a signal to all processes ends are not started again, nor counted", () =>
    Effect.gen(function* () {
      let isStopRequested = false
      const { begun, busySecond, says, until } = yield* started(resting, () => isStopRequested)
      yield* begun
      yield* until(() => running().length === 2)
      isStopRequested = true
      for (const child of running()) process.kill(child, "SIGTERM")
      yield* until(() => running().length === 0)
      for (let n = 0; n < 5; n++) {
        yield* busySecond
        yield* Effect.promise(() => turn())
      }
      assert.lengthOf(running(), 0)
      assert.lengthOf(says("ended"), 0)
    })
  )
})
