// Gives a run of the tests a temporary folder of its own, and one in memory for nats-servers; fails
// the run when a test leaves something in them. Processes that tests start inherit the first one as
// TMPDIR.
import { mkdtemp, readdir, rm, statfs } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { TestProject } from "vitest/node"
import { storeVariable } from "./nats-binary.ts"

/** A file system in memory: an fsync takes 0.7 ms and 0.1 ms of CPU time on a disk. */
const memory = "/dev/shm"
/** Less room makes streams and buckets smaller than they are by default, 14.7 GiB together. */
const roomMin = 20 * 1024 ** 3

const hasRoom = (path: string): Promise<boolean> =>
  statfs(path).then(
    ({ bavail, bsize }) => bavail * bsize >= roomMin,
    () => false
  )

/** A test that timed out did not clean up: then its own failure is what to look at. */
const anyTestFailed = ({ vitest }: TestProject) =>
  vitest.state
    .getTestModules()
    .flatMap((module) => [...module.children.allTests()])
    .some((test) => test.result().state === "failed" || test.diagnostic()?.flaky)

export default async (project: TestProject) => {
  const make = (parent: string) => mkdtemp(join(parent, "bellcast-tests-"))
  const folders = [await make(tmpdir())]
  process.env["TMPDIR"] = folders[0]
  if (process.env[storeVariable] === undefined && (await hasRoom(memory))) {
    folders.push(await make(memory))
    process.env[storeVariable] = folders[1]
  }
  return async () => {
    const leftovers = (await Promise.all(folders.map((folder) => readdir(folder)))).flat()
    for (const folder of folders)
      await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
    if (leftovers.length > 0 && !anyTestFailed(project))
      throw new Error(`tests left in the temporary folder: ${leftovers.join(", ")}`)
  }
}
