// Bundles the service and the command line for the tests, which start hundreds of them: a bundle
// starts in 0.2 s of CPU time, and 1,000 modules of src/ and its packages in 1.0 s.
import { access, mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { inspect } from "node:util"

const root = fileURLToPath(new URL("../..", import.meta.url))
const programs = { service: join(root, "src/main.ts"), cli: join(root, "src/cli/main.ts") }
type Program = keyof typeof programs
/** As far below the root as the sources that look for files by `import.meta.url`. */
const pretendedFolder = join(root, "node_modules/.cache/bellcast")
/** Names a folder of this run of the tests. */
const variable = "BELLCAST_TEST_RUN"
/** Less than vitest gives a hook. On a busy machine a start or a broadcast may take 30 s. */
const waitMillis = 110_000

/**
 * V8 keeps two bytes of each character of a source, if one of them is not Latin-1. A character in a
 * template that reads its raw text, or behind a backslash, would change: there is none.
 */
const inAscii = (code: string): string =>
  code.replace(
    /[^\0-\x7f]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`
  )

const starterOf = (run: string, program: Program): string => join(run, `${program}.cjs`)

const bundle = async (run: string, program: Program): Promise<void> => {
  const { rolldown } = await import("rolldown")
  await using made = await rolldown({
    input: { [program]: programs[program] },
    platform: "node",
    cwd: root,
    // Node.js has none, and rolldown warns of it in CommonJS.
    transform: { define: { "import.meta.env": "undefined" } }
  })
  const { output } = await made.generate({
    format: "cjs",
    strict: true,
    keepNames: true,
    codeSplitting: false
  })
  const path = join(run, program)
  // Node.js warns of each script of node:vm that imports by itself: run-bundle.cjs does it instead.
  const code = output[0].code.replace(/(?<![.\w])import\(/g, "importModule(")
  await writeFile(`${path}.js`, inAscii(code))
  const paths = [path, join(pretendedFolder, `${program}.js`)].map((one) => JSON.stringify(one))
  const runner = JSON.stringify(join(root, "test/support/run-bundle.cjs"))
  await writeFile(starterOf(run, program), `require(${runner})(${paths.join(", ")})\n`)
}

const bundleAll = async (run: string): Promise<void> => {
  await Promise.all([bundle(run, "service"), bundle(run, "cli")])
  // A static import would load the push service of the tests in every worker.
  const { compileBundles } = await import("./compile-bundles.ts")
  await compileBundles(starterOf(run, "service"), starterOf(run, "cli"))
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
    const failure = await bundleAll(run).then(() => "", inspect)
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
export const fileOf = async (program: Program): Promise<string> => {
  const run = process.env[variable]
  if (run === undefined) return programs[program]
  bundled ??= bundleOnce(run)
  await bundled
  return starterOf(run, program)
}

/** Before a run of vitest. Runs that start no program do without the bundle. */
export default async () => {
  const run = await mkdtemp(join(tmpdir(), "bellcast-run-"))
  process.env[variable] = run
  return () => rm(run, { recursive: true, force: true })
}
