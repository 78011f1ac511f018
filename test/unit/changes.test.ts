// Which changes of states of broadcasts are lines of the log.
import { assert, it } from "vitest"
import { isWorthLogging } from "#delivery/changes/changes.ts"

it("a current change is logged at any age, an overtaken one for a minute", () => {
  const yearMillis = 365 * 24 * 3_600_000
  assert.isTrue(isWorthLogging(false, yearMillis))
  assert.isTrue(isWorthLogging(true, 59_999))
  assert.isFalse(isWorthLogging(true, 60_000))
})
