// Bundles the service and the command line for the tests, which start hundreds of them: a bundle
// starts in 0.3 s of CPU time, and 1,000 modules of src/ and its packages in 1.0 s.
import { access, mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../..", import.meta.url))
const programs = { service: join(root, "src/main.ts"), cli: join(root, "src/cli/main.ts") }
/** As far below the root as the sources that look for files by `import.meta.url`. */
const folder = join(root, "node_modules/.cache/bellcast")
/** Names a folder of this run of the tests. */
const variable = "BELLCAST_TEST_RUN"
const waitMillis = 60_000

const bundle = async (): Promise<void> => {
  const { rolldown } = await import("rolldown")
  await using made = await rolldown({ input: programs, platform: "node", cwd: root })
  const { output } = await made.generate({
    keepNames: true,
    entryFileNames: "[name].mjs",
    chunkFileNames: "[name].mjs"
  })
  await mkdir(folder, { recursive: true })
  for (const file of output) {
    const path = join(folder, file.fileName)
    await writeFile(`${path}.${process.pid}`, file.type === "chunk" ? file.code : file.source)
    // A second run of the tests may be reading the file.
    await rename(`${path}.${process.pid}`, path)
  }
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false
  )

/** Bundles, or waits for the worker of vitest that does so already. Both fail with its error. */
const bundleOnce = async (run: string): Promise<void> => {
  const done = join(run, "done")
  const isFirst = await mkdir(join(run, "begun")).then(
    () => true,
    () => false
  )
  if (isFirst) {
    const failure = await bundle().then(() => "", String)
    await writeFile(`${done}.part`, failure)
    await rename(`${done}.part`, done)
  }
  const deadline = performance.now() + waitMillis
  while (!(await exists(done))) {
    if (performance.now() > deadline) throw new Error("another worker did not finish the bundle")
    await sleep(50)
  }
  const failure = await readFile(done, "utf8")
  if (failure !== "") throw new Error(failure)
}

let bundled: Promise<void> | undefined

/** The file that runs a program: its bundle in a run of vitest, its source elsewhere. */
export const fileOf = async (program: keyof typeof programs): Promise<string> => {
  const run = process.env[variable]
  if (run === undefined) return programs[program]
  bundled ??= bundleOnce(run)
  await bundled
  return join(folder, `${program}.mjs`)
}

/** Before a run of vitest. Runs that start no program do without the bundle. */
export default async () => {
  const run = await mkdtemp(join(tmpdir(), "bellcast-run-"))
  process.env[variable] = run
  return () => rm(run, { recursive: true, force: true })
}
