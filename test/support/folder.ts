// Folders that a test may fill, and that are gone when it is over.
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { onTestFinished } from "vitest"

/**
 * An empty folder, removed when the test has finished. A server that is just ending may still
 * write to the folder, so the removal is retried for a second.
 */
export const temporaryFolder = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "bellcast-"))
  onTestFinished(() =>
    rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  )
  return folder
}
