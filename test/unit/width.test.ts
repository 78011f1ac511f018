// No line is wider than 100 columns. The formatter breaks code, and nothing but this test sees
// comments, texts and documents.
import { readdirSync, readFileSync } from "node:fs"
import { assert, it } from "vitest"

const columnsMax = 100

const filesIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => /\.(tsx?|js|css|html|conf|md)$/.test(path) && !path.includes("node_modules"))
    .map((path) => `${folder}/${path}`)

/**
 * Lines that cannot be broken: cells of tables, blocks of code, which people copy, and texts of
 * pages, whose types say what must be filled in: a sum of texts has no such type.
 */
const isFree = (file: string, line: string, isInBlock: boolean): boolean =>
  file.endsWith("/texts.ts")
    ? /^\s+"/.test(line)
    : file.endsWith(".md") && (isInBlock || line.trimStart().startsWith("|"))

const wideIn = (file: string): ReadonlyArray<string> => {
  let isInBlock = false
  return readFileSync(file, "utf8")
    .split("\n")
    .flatMap((line, i) => {
      if (line.trimStart().startsWith("```")) isInBlock = !isInBlock
      const isWide = [...line].length > columnsMax && !isFree(file, line, isInBlock)
      return isWide ? [`${file}:${i + 1}`] : []
    })
}

it("no line of a source file or of a document is wider than 100 columns", () => {
  const folders = ["src", "streams", "test", ".github"].flatMap(filesIn)
  const files = [...folders, "README.md", "CHANGELOG.md", "Makefile", "compose.yaml"]
  assert.isAbove(files.length, 900)
  assert.deepEqual(files.flatMap(wideIn), [])
})
