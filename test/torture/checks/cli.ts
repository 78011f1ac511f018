// Runs the published command as operators do.
import { execFile } from "node:child_process"
import { devNull } from "node:os"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { operatorSettings } from "../fleet/fleet.ts"

const main = fileURLToPath(new URL("../../../src/cli/main.ts", import.meta.url))
const timeoutMillis = 180_000

/** Resolves with what it printed to stdout; rejects when it fails. */
export const bellcast = async (
  natsUrl: string,
  ...args: ReadonlyArray<string>
): Promise<string> => {
  const own = { BELLCAST_NATS_URL: natsUrl, BELLCAST_CONFIG: devNull }
  const env = { ...process.env, ...operatorSettings, ...own }
  const options = { env, timeout: timeoutMillis, maxBuffer: 64 * 1024 ** 2 }
  const { stdout } = await promisify(execFile)(process.execPath, [main, ...args], options)
  return stdout
}
