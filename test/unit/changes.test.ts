// Which changes of states of broadcasts are lines of the log.
import { assert, it } from "vitest"
import { isNews } from "#delivery/changes/changes.ts"

it("the present change is news at any age, one that is overtaken for a minute", () => {
  const yearMillis = 365 * 24 * 3_600_000
  assert.isTrue(isNews(false, yearMillis))
  assert.isTrue(isNews(true, 59_999))
  assert.isFalse(isNews(true, 60_000))
})
