// Makes the files that browsers load before a run of the tests, as `make install` does: without
// make, too, a test sees what the sources are now.
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const program = fileURLToPath(new URL("../../src/browser/build.ts", import.meta.url))

export default async () => {
  await promisify(execFile)(process.execPath, [program])
}
