// `bellcast client --out FOLDER`: copies the files that a site serves, and prints what a page
// needs; or checks that the copies are those of this version.
import { lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join, resolve, sep } from "node:path"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { firstWords, NotBuilt, scripts, textOf, types } from "#browser/serving/files.ts"
import { named, onOff } from "./terminal/input.ts"
import { failed, noted, VerbFailed } from "./terminal/output.ts"

const isFree = (file: string): boolean => lstatSync(file, { throwIfNoEntry: false }) === undefined

/** Writes all files, or none where one of these names is no copy. Returns their paths. */
const copyTo = (folder: string): ReadonlyArray<string> => {
  mkdirSync(folder, { recursive: true })
  const files = [...scripts, ...types].map((name) => {
    const path = join(folder, name)
    return { path, draft: `${path}.${process.pid}`, text: textOf(name) }
  })
  for (const { path } of files)
    if (!isFree(path) && !readFileSync(path, "utf8").startsWith(firstWords))
      throw failed(`${path} is no copy of Bellcast's: name another folder, or remove the file`)
  try {
    for (const { draft, text } of files) writeFileSync(draft, text)
    for (const { draft, path } of files) renameSync(draft, path)
  } finally {
    for (const { draft } of files) rmSync(draft, { force: true })
  }
  return files.map(({ path }) => path)
}

/** Paths of copies that are missing, or not what this version copies. */
const staleIn = (folder: string): ReadonlyArray<string> =>
  [...scripts, ...types]
    .map((name) => ({ path: join(folder, name), text: textOf(name) }))
    .filter(({ path, text }) => isFree(path) || readFileSync(path, "utf8") !== text)
    .map(({ path }) => path)

/** Folders of frameworks and servers whose files have addresses at the root of the site. */
const roots = ["public", "public_html", "htdocs", "html", "wwwroot"]

/**
 * The path at which the site probably serves a folder: its path below such a root, else its name.
 */
export const addressOf = (folder: string): string => {
  const names = resolve(folder)
    .split(sep)
    .filter((name) => name !== "")
  const root = names.findLastIndex((name) => roots.includes(name))
  const below = names.slice(root === -1 ? -1 : root + 1)
  return below.map((name) => `/${encodeURIComponent(name)}`).join("")
}

const adviceOf = (address: string): string => `
In a page, where the folder is served as ${address}/ (all options: src/browser/README.md). A bundler
takes client.js and words.js from a folder of your sources: copy there, too, and import
"./bellcast/client.js".

  <button id="enable">Notify me</button> <span id="says" role="status"></span>
  <script type="module">
    import { connect } from "${address}/client.js"
    import { sentenceOf } from "${address}/words.js"
    const push = await connect({
      url: "https://push.example.org/v1",
      worker: "${address}/worker.js",
      user: "42",
      token: async () => {
        const response = await fetch("/push-token")
        if (response.status === 401) return null
        if (!response.ok) throw new Error("/push-token: " + response.status)
        return response.text()
      }
    })
    const show = () => { document.getElementById("says").textContent = sentenceOf(push) }
    push.addEventListener("change", show)
    show()
    document.getElementById("enable").onclick = () => push.enable({ channels: ["news"] })
  </script>

A site with a service worker of its own writes this at its top, and names its own as \`worker\`:

  importScripts("${address}/worker.js")`

/** Works on the files of a folder. */
const onFiles = <A>(folder: string, work: (folder: string) => A) =>
  Effect.try({
    try: () => {
      if (folder === "") throw failed("--out names no folder: give one, such as public/bellcast")
      return work(folder)
    },
    catch: (error) => {
      if (error instanceof VerbFailed) return error
      if (error instanceof NotBuilt) return failed(error.message)
      return failed(`${folder} cannot be written (${(error as NodeJS.ErrnoException).code})`)
    }
  })

const copy = Effect.fnUntraced(function* (folder: string) {
  const paths = yield* onFiles(folder, copyTo)
  yield* Console.log([...paths, adviceOf(addressOf(folder))].join("\n"))
}, noted)

/** For the build of a site: an upgrade of the service is noticed there. */
const check = Effect.fnUntraced(function* (folder: string) {
  const stale = yield* onFiles(folder, staleIn)
  if (stale.length > 0)
    return yield* failed(
      `not the copies of this version: ${stale.join(", ")}; run bellcast client --out ${folder}`
    )
}, noted)

/** The verb. */
export const clientCommand = Command.make(
  "client",
  {
    out: named("out", "FOLDER").pipe(
      Flag.withDescription("The folder, such as public/bellcast; older copies are replaced")
    ),
    check: onOff("check", "Copy nothing, and fail if the copies are not those of this version")
  },
  (given) => (given.check ? check(given.out) : copy(given.out))
).pipe(
  Command.withDescription("Copy client.js, worker.js and words.js for a site, and their types")
)
