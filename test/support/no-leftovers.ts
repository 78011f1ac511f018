// Gives a run of the tests a temporary folder of its own, and fails the run when a test leaves
// something in it. Processes that tests start inherit the folder as TMPDIR.
import { mkdtemp, readdir, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { TestProject } from "vitest/node"

/** A test that timed out did not clean up: then its own failure is what to look at. */
const anyTestFailed = ({ vitest }: TestProject) =>
  vitest.state
    .getTestModules()
    .flatMap((module) => [...module.children.allTests()])
    .some((test) => test.result().state === "failed" || test.diagnostic()?.flaky)

export default async (project: TestProject) => {
  const folder = await mkdtemp(join(tmpdir(), "bellcast-tests-"))
  process.env["TMPDIR"] = folder
  return async () => {
    const leftovers = await readdir(folder)
    await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
    if (leftovers.length > 0 && !anyTestFailed(project))
      throw new Error(`tests left in the temporary folder: ${leftovers.join(", ")}`)
  }
}
