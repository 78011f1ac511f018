// Runs the service as `make run` does. In a run of vitest the process runs a bundle of the sources
// (bundle.ts).
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { fileOf } from "./bundle.ts"
import { type ProcessOptions, type Service, startProcess } from "./service-process.ts"

export { type Service, secretEnvironment, settingsFile, vapid } from "./service-process.ts"

/** The `program` that runs the sources as they are. */
export const sources = fileURLToPath(new URL("../..", import.meta.url))

export interface ServiceOptions extends ProcessOptions {
  /** A folder of Bellcast, maybe of another commit, whose `src/main.ts` runs without a bundle. */
  readonly program?: string
}

/** Resolves once the process is ready; rejects with its output when it ends or takes too long. */
export const startService = async ({
  program,
  ...options
}: ServiceOptions = {}): Promise<Service> => {
  const main = program === undefined ? await fileOf("service") : join(program, "src/main.ts")
  return startProcess(main, options)
}
