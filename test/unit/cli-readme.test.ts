// src/cli/README.md lists every verb of the command line, and no other; make has each, too.
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

const table = /^\| Verb \|.*\n\| ---.*\n((?:\|.*\n)+)/m.exec(text("README.md"))?.[1] ?? ""
const cells = table
  .trimEnd()
  .split("\n")
  .map((row) => row.split("|")[1]!)

it("lists every verb of the command line, and no other", () => {
  const words = cells.flatMap((cell) =>
    [...cell.matchAll(/`([^`]+)`/g)].flatMap(([, span]) => span!.match(/(?<=^| )[a-z][a-z-]*/g))
  )
  assert.sameMembers(
    [...new Set(words)],
    [...new Set(commands)].filter((name) => name !== "bellcast")
  )
})

it("names verbs that are targets of make, as it says", () => {
  const targets = [...text("../../Makefile").matchAll(/^([a-z-]+): install ## /gm)].map(
    ([, a]) => a
  )
  assert.includeMembers(
    targets,
    cells.map((cell) => /`([\w-]+)/.exec(cell)?.[1])
  )
})
