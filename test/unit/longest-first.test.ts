// The files that begin first in a run of the tests.
import { existsSync } from "node:fs"
import { assert, it } from "vitest"
import { longest } from "../support/longest-first.ts"

it("names files that exist, each once", () => {
  const root = new URL("../../", import.meta.url)
  assert.deepEqual(
    longest.filter((file) => !existsSync(new URL(file, root))),
    []
  )
  assert.equal(new Set(longest).size, longest.length)
})
