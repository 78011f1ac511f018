// Runs the published command as operators do, with the short days of the fleet.
import { execFile } from "node:child_process"
import { devNull } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { operatorSettings } from "../fleet/fleet.ts"
import { flagsOf, thisProgram } from "../fleet/programs.ts"

const main = [...flagsOf(thisProgram), join(thisProgram, "src/cli/main.ts")]
const timeoutMillis = 180_000

/** Resolves with what it printed to stdout; rejects when it fails. */
export const bellcast = async (
  natsUrl: string,
  ...args: ReadonlyArray<string>
): Promise<string> => {
  const own = { BELLCAST_NATS_URL: natsUrl, BELLCAST_CONFIG: devNull }
  const env = { ...process.env, ...operatorSettings, ...own }
  const options = { env, timeout: timeoutMillis, maxBuffer: 64 * 1024 ** 2 }
  const { stdout } = await promisify(execFile)(process.execPath, [...main, ...args], options)
  return stdout
}
