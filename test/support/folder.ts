// Folders that a test may fill, and that are gone when it is over.
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { onTestFinished } from "vitest"

/** An empty folder of the test that asks. A server that is just ending may still write there: what remains is removed again for a second. */
export const temporaryFolder = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "bellcast-"))
  onTestFinished(() =>
    rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  )
  return folder
}
