// Tables of folders in documents name every folder that is there, and no other.
import { readdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, it } from "vitest"
import { documentPaths, projectRoot, spansOf, textOf } from "../support/documents.ts"

const foldersIn = (path: string): ReadonlyArray<string> =>
  readdirSync(join(projectRoot, path), { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() && !entry.name.startsWith(".") ? [entry.name] : []
  )

/** The rows of the table of folders of a document; none: it has no such table. */
const rowsOf = (path: string): ReadonlyArray<string> =>
  /^\| Folder \|.*\n\|[ -|]+\n((?:\|.*\n)+)/m.exec(textOf(path))?.[1]?.trimEnd().split("\n") ?? []

const tables = documentPaths
  .map((path) => ({ path, folder: dirname(path), rows: rowsOf(path) }))
  .filter(({ rows }) => rows.length > 0)

it("reads the tables", () => {
  assert.includeMembers(
    tables.map(({ path }) => path),
    ["src/README.md", "src/nats/README.md", "src/gateway/README.md", "test/README.md"]
  )
})

it.each(tables)("$path names every folder beside it, and no other", ({ folder, rows }) => {
  const named = rows.flatMap((row) =>
    spansOf(row.split("|")[1]!).flatMap((span) => /^([\w-]+)\/(?:[\w-]+\/)?$/.exec(span)?.[1] ?? [])
  )
  assert.deepEqual([...new Set(named)].sort(), [...foldersIn(folder)].sort())
})

it.each(tables)(
  "$path names all folders of a folder of which it names some",
  ({ folder, rows }) => {
    // Only in its own row: another row may mention one of its folders.
    const named = rows.flatMap((row) =>
      [...row.matchAll(/`([\w-]+)\/([\w-]+)\/`/g)]
        .map(([, outer, inner]) => [outer!, inner!] as const)
        .filter(([outer]) => row.split("|")[1]!.includes(`${outer}/`))
    )
    for (const outer of new Set(named.map(([first]) => first))) {
      const found = named.flatMap(([first, inner]) => (first === outer ? [inner] : []))
      assert.deepEqual(
        [...new Set(found)].sort(),
        [...foldersIn(join(folder, outer))].sort(),
        outer
      )
    }
  }
)
