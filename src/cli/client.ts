// `bellcast client --out FOLDER`: copies the files that a site serves, and prints what a page
// needs.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { basename, join, resolve } from "node:path"
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { firstWords, scripts, textOf } from "#browser/serving/files.ts"
import { failed, noted, VerbFailed } from "./terminal/failed.ts"

/** The text of a file; empty where there is none. */
const textAt = (file: string): string => {
  try {
    return readFileSync(file, "utf8")
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return ""
    throw error
  }
}

/** Writes all files or, where one is of somebody else, none. Returns their paths. */
const copyTo = (folder: string): ReadonlyArray<string> => {
  mkdirSync(folder, { recursive: true })
  const paths = scripts.map((name) => join(folder, name))
  for (const path of paths) {
    const text = textAt(path)
    if (text !== "" && !text.startsWith(firstWords))
      throw failed(`${path} is no copy of Bellcast's: name another folder, or remove the file`)
  }
  for (const name of scripts) writeFileSync(join(folder, name), textOf(name))
  return paths
}

const adviceOf = (address: string): string => `
In a page, where the folder is served as ${address}/ (all options: src/browser/README.md):

  <script type="module">
    import { connect } from "${address}/client.js"
    const push = await connect({
      url: "https://push.example.org/v1",
      worker: "${address}/worker.js",
      user: "42",
      token: () => fetch("/push-token").then((response) => response.text())
    })
    button.onclick = () => push.enable({ channels: ["news"] })
  </script>

A site with a service worker of its own writes this at its top, and names its own as \`worker\`:

  importScripts("${address}/worker.js")`

const copy = Effect.fnUntraced(function* (folder: string) {
  const paths = yield* Effect.try({
    try: () => copyTo(folder),
    catch: (error) =>
      error instanceof VerbFailed
        ? error
        : failed(`${folder} cannot be written (${(error as NodeJS.ErrnoException).code})`)
  })
  yield* Console.log([...paths, adviceOf(`/${basename(resolve(folder))}`)].join("\n"))
}, noted)

/** The verb. */
export const clientCommand = Command.make(
  "client",
  {
    out: Flag.String("out").pipe(
      Flag.withDescription("The folder, such as public/bellcast; older copies are replaced")
    )
  },
  ({ out }) => copy(out)
).pipe(Command.withDescription("Copy client.js and worker.js, which the pages of a site load"))
