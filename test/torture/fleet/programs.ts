// The versions of the service that a run starts: this checkout, and an earlier commit for the
// rolling upgrade.
import { execFileSync } from "node:child_process"
import { mkdirSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { storedForm } from "#streams/index.ts"

export const thisProgram = fileURLToPath(new URL("../../..", import.meta.url)).replace(/\/$/, "")

/** Flags of Node.js: this checkout runs with short days. An earlier commit has whole ones. */
export const flagsOf = (program: string): ReadonlyArray<string> =>
  program === thisProgram ? ["--import", new URL("short-days.ts", import.meta.url).href] : []

const git = (...args: ReadonlyArray<string>): Buffer =>
  execFileSync("git", ["-C", thisProgram, ...args], {
    maxBuffer: 64 * 1024 ** 2,
    stdio: ["ignore", "pipe", "pipe"]
  })

/** The version and commit of this checkout, for the results. */
export const versionOf = (): string => {
  try {
    return git("describe", "--always", "--dirty").toString().trim()
  } catch {
    return "unknown"
  }
}

/** The commit that brought the present form of streams and buckets; the earliest that stores so. */
const formerCommit = (): string => {
  const { buckets, streams } = storedForm
  const form = `storedForm = { streams: "${streams}", buckets: "${buckets}" }`
  const found = git("log", "-1", "--format=%H", "-S", form, "--", "streams/index.ts")
  if (found.length === 0) throw new Error("this clone has no commit that brought the stored form")
  return found.toString().trim()
}

/**
 * Unpacks that commit into a folder beside this checkout's packages, makes its files for browsers,
 * and returns the folder. Throws where its commit is not in the clone, or needs other packages.
 */
export const unpackFormer = (folder: string): string => {
  const target = join(folder, "former")
  const archive = git("archive", formerCommit(), "src", "streams", "package.json", "tsconfig.json")
  mkdirSync(target, { recursive: true })
  execFileSync("tar", ["-x", "-C", target], { input: archive })
  symlinkSync(join(thisProgram, "node_modules"), join(target, "node_modules"))
  execFileSync(process.execPath, [join(target, "src/browser/build.ts")])
  return target
}
