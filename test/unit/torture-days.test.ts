// The programs of the torture rig have short days, and refuse to start where they would not.
import { execFileSync } from "node:child_process"
import { assert, describe, it } from "vitest"
import {
  dayMillis,
  endedMillis,
  historyDays,
  historyMillis,
  renewableMillis
} from "../torture/fleet/days.ts"
import { flagsOf, thisProgram } from "../torture/fleet/programs.ts"

const programs = [
  `import { endOfHistory } from "#domain/history.ts"`,
  `import { renewableMillisMax } from "#domain/subscription/tombstone.ts"`,
  `import { EndedMillis } from "#projection/forget.ts"`,
  `import "#projection/trim.ts"`,
  `const history = -endOfHistory(0, ${historyDays})`,
  `console.log(JSON.stringify([history, renewableMillisMax, EndedMillis.defaultValue()]))`
]

const run = (flags: ReadonlyArray<string>) => {
  const args = [...flags, "--input-type=module", "--eval", programs.join("\n")]
  return JSON.parse(execFileSync(process.execPath, args, { cwd: thisProgram, encoding: "utf8" }))
}

describe("the days of the torture rig", () => {
  it("are those of its programs, and whole ones elsewhere", () => {
    assert.deepEqual(run(flagsOf(thisProgram)), [historyMillis, renewableMillis, endedMillis])
    const whole = 24 * 60 * 60_000
    assert.deepEqual(run([]), [historyDays * whole, 30 * whole, 60 * 60_000])
    assert.deepEqual(flagsOf("another commit"), [])
  })

  it("leave the history longer than all that rests on it", () => {
    assert.isBelow(endedMillis, 95 * dayMillis)
    assert.isBelow(renewableMillis, 95 * dayMillis)
  })
})
