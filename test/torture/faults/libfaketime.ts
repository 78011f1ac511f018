// Finds libfaketime, which gives one process a clock of its own, or fetches its Debian package into
// .tools/ without installing it.
import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const run = promisify(execFile)
const toolsFolder = fileURLToPath(new URL("../../../.tools", import.meta.url))

/** The variant for programs with threads. Debian keeps it below the name of the machine. */
const fileName = "libfaketimeMT.so.1"
const machines = ["x86_64-linux-gnu", "aarch64-linux-gnu"]
const foldersOf = (root: string) => machines.map((name) => join(root, "usr/lib", name, "faketime"))

const fetchedRoot = join(toolsFolder, "libfaketime")

const found = (): string | undefined =>
  [...foldersOf("/"), ...foldersOf(fetchedRoot), "/usr/lib/faketime", "/usr/lib64/faketime"]
    .map((folder) => join(folder, fileName))
    .find(existsSync)

const fetchFromDebian = async (): Promise<void> => {
  await mkdir(toolsFolder, { recursive: true })
  const folder = await mkdtemp(join(toolsFolder, "fetch-"))
  const options = { cwd: folder, timeout: 60_000 }
  try {
    await run("apt-get", ["download", "libfaketime"], options)
    const archive = (await readdir(folder)).find((name) => name.endsWith(".deb"))
    if (archive === undefined) throw new Error("apt-get download left no package")
    await run("dpkg", ["-x", archive, "unpacked"], options)
    // Another process may have put it there in the meantime.
    await rename(join(folder, "unpacked"), fetchedRoot).catch(() => {})
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

let located: Promise<string | undefined> | undefined

/** The path of the library. Undefined: not here, and it cannot be fetched. */
export const locateLibfaketime = (): Promise<string | undefined> => {
  located ??= (async () => {
    if (found() === undefined) await fetchFromDebian().catch(() => {})
    return found()
  })()
  return located
}
