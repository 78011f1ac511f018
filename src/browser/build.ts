// Makes the files that browsers load, of the modules and pages in this folder: `make install` runs
// it, the build of the image, and every run of the tests. A service and the command line read what
// it made, so that they need no rolldown, which is a package for development.
//
// The files lie in `.built/` as the service has them below `/v1/`, so that the import of a page,
// such as `../client.js`, means the same in both. Not in `src/`: checks and tests that read all
// sources would read them, and the image would copy those of the developer. Not in `node_modules/`,
// which `npm ci` removes.
import { createHash } from "node:crypto"
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { bundles, firstWords, isCopied, sheets } from "./serving/files.ts"

/** The oldest browsers of README.md, "Browsers". */
const target = ["chrome103", "firefox100", "safari16.1"]

const sources = fileURLToPath(new URL(".", import.meta.url))
const root = join(sources, "../..")
const built = join(root, ".built")

const read = (path: string): string => readFileSync(path, "utf8")

const names = readdirSync(sources, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map(({ name, parentPath }) => join(parentPath, name).slice(sources.length))
  .sort()

const packageJson = read(join(root, "package.json"))
const { version } = JSON.parse(packageJson) as { readonly version: string }

/** Changes with every source, with the version, and with that of rolldown. */
const hashOfSources = (): string => {
  const hash = createHash("sha256").update(packageJson)
  for (const name of names) hash.update(`\n${name}\n`).update(read(join(sources, name)))
  return hash.digest("hex")
}

/** Others may read the file meanwhile, such as another run of the tests: they get all of a text. */
const write = (name: string, text: string): void => {
  const path = join(built, name)
  mkdirSync(dirname(path), { recursive: true })
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, text)
  renameSync(draft, path)
}

const importRolldown = () =>
  import("rolldown").catch((cause) => {
    throw new Error(
      "rolldown is missing, which puts the files for browsers together: `make install` fetches it",
      { cause }
    )
  })

/** Notices that licences of others ask for, by the start of the path in a bundle. */
const notices: Readonly<Record<string, string>> = {
  "console/console.js": "// With preact (MIT, (c) 2015-present Jason Miller).\n"
}

/**
 * The texts by their files. Small, but with the names of properties, which pages and records on
 * devices have.
 */
const bundled = async (name: string): Promise<ReadonlyMap<string, string>> => {
  const { format, from, later } = bundles[name]!
  const { rolldown } = await importRolldown()
  const made = await rolldown({
    input: join(sources, from),
    platform: "browser",
    cwd: root,
    // A stage of the image has this folder only, without the settings that those in it extend.
    tsconfig: false,
    // A page with an import that is left in it does nothing.
    onLog: (_level, { code, message }) => {
      if (code === "UNRESOLVED_IMPORT") throw new Error(message)
    },
    transform: { target, jsx: { runtime: "automatic", importSource: "preact" } }
  })
  try {
    const { output } = await made.generate({
      format,
      minify: true,
      codeSplitting: later !== undefined,
      entryFileNames: basename(name),
      ...(later === undefined ? {} : { chunkFileNames: later })
    })
    const files = output.map(({ fileName }) => fileName)
    // A third one would be served by no gateway.
    if (files.length !== (later === undefined ? 1 : 2))
      throw new Error(`${name} became other files than serving/files.ts names: ${files}`)
    const first = `${firstWords}${name} ${version}, made of src/browser/${from} and its imports.`
    // A site may have put it behind a statement of its own that has no semicolon.
    const start = `${first}\n${notices[name] ?? ""}${format === "iife" ? ";" : ""}`
    const code = output.flatMap((chunk) =>
      chunk.type === "chunk"
        ? [[join(dirname(name), chunk.fileName), start + chunk.code] as const]
        : []
    )
    return new Map(code)
  } finally {
    await made.close()
  }
}

/** The types of a script, with the version in the first line. */
const typesOf = (name: string): string =>
  read(join(sources, "types", name)).replace(/^.*?\.js/, `$& ${version}`)

/** One sheet of all in a folder, in the order of their names, without comments and indents. */
const sheetOf = (folder: string): string =>
  names
    .filter((name) => name.startsWith(folder) && name.endsWith(".css"))
    .map((name) => read(join(sources, name)))
    .join("\n")
    .replace(/\/\*.*?\*\//gs, "")
    .replace(/\s*\n\s*/g, "\n")
    .trimStart()

const make = async (): Promise<void> => {
  for (const name of Object.keys(bundles))
    for (const [file, text] of await bundled(name)) write(file, text)
  for (const [name, folder] of Object.entries(sheets)) write(name, sheetOf(folder))
  for (const name of readdirSync(join(sources, "types"))) write(name, typesOf(name))
  for (const name of names.filter(isCopied)) write(name, read(join(sources, name)))
}

/** The hash of the sources that the files were made of: they are made anew when it differs. */
const stamp = join(built, "made-of")
const hash = hashOfSources()
const isMade = () => {
  try {
    return read(stamp) === hash
  } catch {
    return false
  }
}

if (!isMade()) {
  rmSync(stamp, { force: true })
  await make()
  write("made-of", hash)
}
