// src/cli/README.md lists every verb of the command line, and no other.
import { readdirSync, readFileSync } from "node:fs"
import { assert, it } from "vitest"

const root = new URL("../../src/cli/", import.meta.url)
const text = (path: string) => readFileSync(new URL(path, root), "utf8")

/** Words that the code makes commands of. */
const commands = readdirSync(root, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .flatMap((file) =>
    [...text(file).matchAll(/(?:Command\.make|changing)\(\s*"([\w-]+)"/g)].map(([, name]) => name!)
  )

it("lists every verb of the command line, and no other", () => {
  const table = /^\| Verb \|.*\n\| ---.*\n((?:\|.*\n)+)/m.exec(text("README.md"))?.[1] ?? ""
  const cells = table
    .trimEnd()
    .split("\n")
    .map((row) => row.split("|")[1]!)
  const words = cells.flatMap((cell) =>
    [...cell.matchAll(/`([^`]+)`/g)].flatMap(([, span]) => span!.match(/(?<=^| )[a-z][a-z-]*/g))
  )
  assert.sameMembers(
    [...new Set(words)],
    [...new Set(commands)].filter((name) => name !== "bellcast")
  )
})
