// Runs a program to its end.
import { type ExecFileOptions, execFile } from "node:child_process"
import { promisify } from "node:util"

/** Standard output. Rejects with both outputs when the exit code is not 0, or after 10 minutes. */
export const run = async (
  program: string,
  args: ReadonlyArray<string>,
  options: ExecFileOptions = {}
): Promise<string> => {
  const limits = { timeout: 600_000, maxBuffer: 64 * 1024 * 1024 }
  const { stdout } = await promisify(execFile)(program, [...args], { ...limits, ...options })
  return String(stdout)
}
