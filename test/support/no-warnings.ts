// Fails a run of the tests in which Node.js warned in any process: the tests' own, the service, the
// command line, push services. Node.js appends the warnings of all of them to one file.
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"

export default async () => {
  const folder = await mkdtemp(join(tmpdir(), "bellcast-warnings-"))
  const file = join(folder, "warnings")
  process.env["NODE_REDIRECT_WARNINGS"] = file
  return async () => {
    const warnings = await readFile(file, "utf8").catch(() => "")
    await rm(folder, { recursive: true, force: true })
    if (warnings !== "") throw new Error(`Node.js warned in a process under test:\n${warnings}`)
  }
}
