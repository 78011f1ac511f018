// No line of code or comment is wider than 100 columns. The formatter breaks code, and nothing but
// this test sees comments and texts.
import { readdirSync, readFileSync } from "node:fs"
import { assert, it } from "vitest"

const columnsMax = 100

it("no line of a source file is wider than 100 columns", () => {
  const files = ["src", "streams", "test"].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".ts") && !path.includes("node_modules"))
      .map((path) => `${folder}/${path}`)
  )
  assert.isAbove(files.length, 500)
  const wide = files.flatMap((file) =>
    readFileSync(file, "utf8")
      .split("\n")
      .flatMap((line, i) => ([...line].length > columnsMax ? [`${file}:${i + 1}`] : []))
  )
  assert.deepEqual(wide, [])
})
